// Turns a CIFAR-10 batch kept as a picture (one image per row of pixels) back into the binary
// version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// Records of a label and 3 x 1024 bytes, as in data_batch_1.bin. The picture must be 1024 pixels
// wide, with one row per label.
Result<std::vector<char>> cifar_batch_from_png(const std::string& png_path,
                                               std::span<const uint8_t> labels);

// A JSON list of whole numbers from 0 to 9.
Result<std::vector<uint8_t>> read_cifar_labels(const std::string& json_path);

}  // namespace drover

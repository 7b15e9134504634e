// Converts a CIFAR-10 batch from PNG (one image per row of pixels) to the binary version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace drover {

// Records of a label and 3 x 1024 bytes, as in data_batch_1.bin. Fails if the PNG is not 1024
// pixels wide or does not have one row per label.
Result<std::vector<char>> cifar_batch_from_png(const std::string& png_path,
                                               std::span<const uint8_t> labels);

// Reads a JSON list of whole numbers from 0 to 9.
Result<std::vector<uint8_t>> read_cifar_labels(const std::string& json_path);

}  // namespace drover

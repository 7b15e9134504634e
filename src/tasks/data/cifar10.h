// Reads the binary version of CIFAR-10: records of one label byte and 3 x 32 x 32 pixels, plane by
// plane.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "tasks/data/dataset.h"

namespace drover {

inline constexpr size_t kCifarPixels = 3 * 32 * 32;
inline constexpr size_t kCifarRecord = 1 + kCifarPixels;
inline constexpr uint32_t kCifarClasses = 10;

// Any number of training batches, at least one; each may be gzip or plain and of any length.
Result<Dataset> read_cifar10(const std::vector<std::string>& train_batches,
                             const std::string& test_batch);

}  // namespace drover

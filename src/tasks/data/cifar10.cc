#include <fmt/format.h>

#include <array>

#include "core/check.h"
#include "tasks/data/input_file.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

Status append_batch(const std::string& path, DataPart& part) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return file.error();
  std::array<uint8_t, kCifarRecord> record{};
  for (size_t row = 0;; ++row) {
    const Result<size_t> got = file.value().read(record);
    if (!got.ok()) return got.error();
    if (got.value() == 0 && row > 0) return done();
    if (got.value() < record.size()) {
      return invalid_input(fmt::format(
          "{} is truncated: record {} has {} of {} bytes. Copy or download the file again.", path,
          row, got.value(), record.size()));
    }
    if (record[0] >= kCifarClasses) {
      return invalid_input(
          fmt::format("{}: label {} of record {} is out of range 0 to {}. Is this the binary "
                      "version of CIFAR-10?",
                      path, record[0], row, kCifarClasses - 1));
    }
    part.labels.push_back(record[0]);
    part.bytes.insert(part.bytes.end(), record.begin() + 1, record.end());
  }
}

}  // namespace

Result<Dataset> read_cifar10(const std::vector<std::string>& train_batches,
                             const std::string& test_batch) {
  DROVER_CHECK(!train_batches.empty());
  Dataset dataset;
  dataset.kind = DataKind::kImages;
  dataset.channels = 3;
  dataset.height = 32;
  dataset.width = 32;
  dataset.classes = kCifarClasses;
  // Reserves the standard size, so that appending does not allocate twice the memory.
  dataset.train.bytes.reserve(train_batches.size() * 10'000 * kCifarPixels);
  dataset.test.bytes.reserve(10'000 * kCifarPixels);
  for (const std::string& path : train_batches) {
    if (Status read = append_batch(path, dataset.train); !read.ok()) return read.error();
  }
  if (Status read = append_batch(test_batch, dataset.test); !read.ok()) return read.error();
  measure_pixels(dataset);
  return dataset;
}

}  // namespace drover

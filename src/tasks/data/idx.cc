#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tasks/data/input_file.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

constexpr uint32_t kImagesMagic = 0x0803;  // unsigned bytes, three dimensions
constexpr uint32_t kLabelsMagic = 0x0801;  // unsigned bytes, one dimension
constexpr uint32_t kSideMax = 4096;        // pixels; more is a damaged header

struct IdxContent {
  std::vector<uint32_t> dimensions;
  std::vector<uint8_t> bytes;
};

Error truncated(const std::string& path, const std::string& detail) {
  return invalid_input(
      fmt::format("{} is truncated: {}. Copy or download the file again.", path, detail));
}

Result<uint32_t> read_number(InputFile& file) {
  std::array<uint8_t, 4> bytes{};
  const Result<size_t> got = file.read(bytes);
  if (!got.ok()) return got.error();
  if (got.value() != bytes.size()) return truncated(file.path(), "it ends within the header");
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

Result<IdxContent> read_idx_file(const std::string& path, uint32_t magic, const char* what) {
  Result<InputFile> opened = InputFile::open(path);
  if (!opened.ok()) return opened.error();
  InputFile& file = opened.value();

  const Result<uint32_t> found = read_number(file);
  if (!found.ok()) return found.error();
  if (found.value() != magic) {
    return invalid_input(fmt::format(
        "{} is not an IDX file of {}: it begins with 0x{:08x} where 0x{:08x} is expected", path,
        what, found.value(), magic));
  }
  IdxContent content;
  uint64_t size = 1;
  for (uint32_t dimension = 0; dimension < (magic & 0xff); ++dimension) {
    const Result<uint32_t> length = read_number(file);
    if (!length.ok()) return length.error();
    if (length.value() == 0 || (dimension > 0 && length.value() > kSideMax)) {
      return invalid_input(fmt::format("the header of {} is damaged: dimension {} is {}", path,
                                       dimension + 1, length.value()));
    }
    content.dimensions.push_back(length.value());
    size *= length.value();  // at most 2^32 * 2^12 * 2^12
  }
  const std::string promise =
      fmt::format("its header has {} {} ({} bytes)", content.dimensions[0], what, size);
  if (size > file.size_bound()) return truncated(path, promise + ", more than the file can hold");
  content.bytes.resize(size);
  const Result<size_t> got = file.read(content.bytes);
  if (!got.ok()) return got.error();
  if (got.value() != size) {
    return truncated(path, fmt::format("{}, but only {} bytes follow", promise, got.value()));
  }
  std::array<uint8_t, 1> extra{};
  const Result<size_t> rest = file.read(extra);
  if (!rest.ok()) return rest.error();
  if (rest.value() != 0) {
    return invalid_input(
        fmt::format("{} does not fit its header: {}, but more follow", path, promise));
  }
  return content;
}

Result<DataPart> read_part(const std::string& images_path, const std::string& labels_path,
                           Dataset& dataset, bool first) {
  Result<IdxContent> images = read_idx_file(images_path, kImagesMagic, "images");
  if (!images.ok()) return images.error();
  const Result<IdxContent> labels = read_idx_file(labels_path, kLabelsMagic, "labels");
  if (!labels.ok()) return labels.error();

  const std::vector<uint32_t>& shape = images.value().dimensions;
  if (shape[0] != labels.value().dimensions[0]) {
    return invalid_input(fmt::format("{} has {} images but {} has {} labels", images_path, shape[0],
                                     labels_path, labels.value().dimensions[0]));
  }
  if (first) {
    dataset.height = shape[1];
    dataset.width = shape[2];
    const auto& bytes = labels.value().bytes;
    dataset.classes = uint32_t{*std::max_element(bytes.begin(), bytes.end())} + 1;
  } else if (shape[1] != dataset.height || shape[2] != dataset.width) {
    return invalid_input(fmt::format("{} has images of {} x {} but the training images are {} x {}",
                                     images_path, shape[1], shape[2], dataset.height,
                                     dataset.width));
  }
  DataPart part;
  part.bytes = std::move(images.value().bytes);
  part.labels.assign(labels.value().bytes.begin(), labels.value().bytes.end());
  for (size_t row = 0; row < part.labels.size(); ++row) {
    if (part.labels[row] >= dataset.classes) {
      return invalid_input(
          fmt::format("{}: label {} of row {} is out of range, the training labels are 0 to {}",
                      labels_path, part.labels[row], row, dataset.classes - 1));
    }
  }
  return part;
}

}  // namespace

Result<Dataset> read_idx(const IdxFiles& files) {
  Dataset dataset;
  dataset.kind = DataKind::kImages;
  Result<DataPart> train = read_part(files.train_images, files.train_labels, dataset, true);
  if (!train.ok()) return train.error();
  dataset.train = std::move(train).value();
  Result<DataPart> test = read_part(files.test_images, files.test_labels, dataset, false);
  if (!test.ok()) return test.error();
  dataset.test = std::move(test).value();
  measure_pixels(dataset);
  return dataset;
}

}  // namespace drover

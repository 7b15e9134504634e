#include "tasks/data/cifar_png.h"

#include <fmt/format.h>
#include <png.h>

#include <nlohmann/json.hpp>

#include "tasks/data/input_file.h"
#include "tasks/data/readers.h"

namespace drover {
namespace {

constexpr uint32_t kPixels = 32 * 32;
constexpr size_t kJsonBytesMax = 16 << 20;

}  // namespace

Result<std::vector<char>> cifar_batch_from_png(const std::string& png_path,
                                               std::span<const uint8_t> labels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, png_path.c_str()) == 0) {
    return invalid_input(fmt::format("cannot read {}: {}", png_path, image.message));
  }
  if (image.width != kPixels || image.height != labels.size()) {
    const auto [width, height] = std::pair(image.width, image.height);
    png_image_free(&image);
    return invalid_input(fmt::format("{} is {} x {} pixels where {} x {} are expected", png_path,
                                     width, height, kPixels, labels.size()));
  }
  image.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0) {
    return invalid_input(fmt::format("cannot read {}: {}", png_path, image.message));
  }
  std::vector<char> records;
  records.reserve(labels.size() * kCifarRecord);
  for (size_t row = 0; row < labels.size(); ++row) {
    records.push_back(static_cast<char>(labels[row]));
    const uint8_t* from = &pixels[row * kCifarPixels];
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t pixel = 0; pixel < kPixels; ++pixel) {
        records.push_back(static_cast<char>(from[3 * pixel + channel]));
      }
    }
  }
  return records;
}

Result<std::vector<uint8_t>> read_cifar_labels(const std::string& json_path) {
  Result<InputFile> file = InputFile::open(json_path);
  if (!file.ok()) return file.error();
  const Result<std::vector<uint8_t>> bytes = file.value().read_rest(kJsonBytesMax);
  if (!bytes.ok()) return bytes.error();
  const auto json = nlohmann::json::parse(bytes.value(), nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&] {
    return invalid_input(fmt::format("{} is not a JSON list of labels from 0 to 9", json_path));
  };
  if (!json.is_array()) return wrong();
  std::vector<uint8_t> labels;
  for (const auto& label : json) {
    if (!label.is_number_unsigned() || label.get<uint64_t>() >= kCifarClasses) return wrong();
    labels.push_back(label.get<uint8_t>());
  }
  return labels;
}

}  // namespace drover

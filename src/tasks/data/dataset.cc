#include "tasks/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/text.h"

namespace drover {

void measure_pixels(Dataset& dataset) {
  DROVER_CHECK(dataset.kind == DataKind::kImages);
  DROVER_CHECK(!dataset.train.bytes.empty());
  const size_t plane = size_t{dataset.height} * dataset.width;
  const size_t planes = dataset.train.bytes.size() / plane;
  dataset.mean.clear();
  dataset.deviation.clear();
  for (uint32_t channel = 0; channel < dataset.channels; ++channel) {
    // Integer arithmetic gives the same mean on every machine.
    uint64_t sum = 0;
    uint64_t squares = 0;
    for (size_t index = channel; index < planes; index += dataset.channels) {
      for (const uint8_t pixel : std::span(dataset.train.bytes).subspan(index * plane, plane)) {
        sum += pixel;
        squares += uint64_t{pixel} * pixel;
      }
    }
    const double count = static_cast<double>(planes / dataset.channels * plane);
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    dataset.mean.push_back(static_cast<float>(mean / 255.0));
    // Avoids division by zero for a constant channel.
    dataset.deviation.push_back(static_cast<float>(std::sqrt(std::max(variance, 1.0)) / 255.0));
  }
}

void copy_rows(const Dataset& dataset, const DataPart& part, std::span<const uint64_t> rows,
               std::span<float> out) {
  const size_t row_size = dataset.row_size();
  DROVER_CHECK(dataset.kind != DataKind::kText);
  DROVER_CHECK(out.size() == rows.size() * row_size);
  if (dataset.kind == DataKind::kRows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      DROVER_CHECK((rows[i] + 1) * row_size <= part.values.size());
      std::copy_n(&part.values[rows[i] * row_size], row_size, &out[i * row_size]);
    }
    return;
  }
  const size_t plane = size_t{dataset.height} * dataset.width;
  for (uint32_t channel = 0; channel < dataset.channels; ++channel) {
    std::array<float, 256> normalised;
    for (size_t pixel = 0; pixel < normalised.size(); ++pixel) {
      normalised[pixel] =
          (static_cast<float>(pixel) / 255.0f - dataset.mean[channel]) / dataset.deviation[channel];
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      DROVER_CHECK((rows[i] + 1) * row_size <= part.bytes.size());
      const uint8_t* from = &part.bytes[rows[i] * row_size + channel * plane];
      float* to = &out[i * row_size + channel * plane];
      for (size_t pixel = 0; pixel < plane; ++pixel) to[pixel] = normalised[from[pixel]];
    }
  }
}

std::string describe(const Dataset& dataset) {
  if (dataset.kind == DataKind::kText) {
    return fmt::format("{} + {} characters, {} different", with_commas(dataset.train.bytes.size()),
                       with_commas(dataset.test.bytes.size()), dataset.classes);
  }
  const std::string rows =
      dataset.kind == DataKind::kImages
          ? fmt::format("images of {} x {} x {}", dataset.channels, dataset.height, dataset.width)
          : fmt::format("rows of {} features", dataset.width);
  return fmt::format("{} + {} {}, {} classes", with_commas(dataset.train.labels.size()),
                     with_commas(dataset.test.labels.size()), rows, dataset.classes);
}

}  // namespace drover

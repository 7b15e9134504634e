// Dataset: training and test samples in memory, in the format of the files.
//
// Pixels stay bytes and are normalized when a batch is made. So a hundred workers forked by one
// launcher share one copy, which has a quarter of the size of floats. A Dataset is immutable once
// it is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drover {

enum class DataKind : uint8_t {
  kImages,  // DataPart::bytes: pixels, rows of channels x height x width
  kRows,    // DataPart::values: rows of `width` numbers
  kText,    // DataPart::bytes: one index into the vocabulary per character
};

struct DataPart {
  std::vector<uint8_t> bytes;
  std::vector<float> values;
  std::vector<uint32_t> labels;  // one per row, each below Dataset::classes; none for text
};

struct Dataset {
  std::string name;    // as given by the user
  std::string source;  // its origin, for people
  DataKind kind = DataKind::kImages;
  uint32_t channels = 1;
  uint32_t height = 1;
  uint32_t width = 0;
  uint32_t classes = 0;          // text: size of the vocabulary
  std::string vocabulary;        // text: the character of each index
  std::vector<float> mean;       // images: per channel, of pixels scaled to 0..1
  std::vector<float> deviation;  // images: likewise, never zero
  DataPart train;
  DataPart test;

  // Numbers per row.
  size_t row_size() const { return size_t{channels} * height * width; }
};

// Sets mean and deviation of an image set from its training part, so that normalized pixels have
// mean 0 and deviation 1 in every channel. REQUIRES: kind kImages, at least one training row.
void measure_pixels(Dataset& dataset);

// Writes the given rows of `part` one after another, with normalized pixels.
// REQUIRES: not text; every row is in the part; out.size() == rows.size() * dataset.row_size().
void copy_rows(const Dataset& dataset, const DataPart& part, std::span<const uint64_t> rows,
               std::span<float> out);

// "60,000 + 10,000 images of 1 x 28 x 28, 10 classes"
std::string describe(const Dataset& dataset);

}  // namespace drover

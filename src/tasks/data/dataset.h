// Dataset: samples to learn from and samples to be tested on, in memory, in the form the files hold
// them.
//
// Pixels stay bytes and are normalised when a batch is made: a hundred workers forked from one
// launcher then share one copy, a quarter the size of floats. Nothing writes to a Dataset once it
// is loaded.
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
  std::string name;    // what the user called it
  std::string source;  // where it came from, for people
  DataKind kind = DataKind::kImages;
  uint32_t channels = 1;
  uint32_t height = 1;
  uint32_t width = 0;
  uint32_t classes = 0;          // text: size of the vocabulary
  std::string vocabulary;        // text: the character each index stands for
  std::vector<float> mean;       // images: per channel, of pixels scaled to 0..1
  std::vector<float> deviation;  // images: likewise, never zero
  DataPart train;
  DataPart test;

  // Numbers per row.
  size_t row_size() const { return size_t{channels} * height * width; }
};

// Sets mean and deviation of an image set from its training part, so that normalised pixels have
// mean 0 and deviation 1 in every channel. REQUIRES: kind kImages, a training row at least.
void measure_pixels(Dataset& dataset);

// Writes the chosen rows of `part` one after another, pixels normalised.
// REQUIRES: not text; every row is in the part; out.size() == rows.size() * dataset.row_size().
void copy_rows(const Dataset& dataset, const DataPart& part, std::span<const uint64_t> rows,
               std::span<float> out);

// "60,000 + 10,000 images of 1 x 28 x 28, 10 classes"
std::string describe(const Dataset& dataset);

}  // namespace drover

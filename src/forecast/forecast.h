// Forecast: what the next step's run-times may be, as equally likely samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace drover {

// A matrix, one row a sample. Column i belongs to the i-th worker asked for; once sorted, to the
// i-th to arrive. Buffers are meant to be used again and again: resize() keeps the memory.
struct Forecast {
  uint32_t samples = 0;
  uint32_t workers = 0;
  bool sorted = false;       // every row ascends: order statistics
  std::vector<float> times;  // samples x workers, all positive

  void resize(uint32_t sample_count, uint32_t worker_count) {
    samples = sample_count;
    workers = worker_count;
    sorted = false;
    times.resize(size_t{sample_count} * worker_count);
  }
  std::span<float> row(uint32_t sample) {
    return std::span(times).subspan(size_t{sample} * workers, workers);
  }
  std::span<const float> row(uint32_t sample) const {
    return std::span(times).subspan(size_t{sample} * workers, workers);
  }
};

}  // namespace drover

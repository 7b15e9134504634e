// Forecast: the next step's run-times, as equally likely samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace drover {

// A matrix with one row per sample. Column i belongs to the i-th requested worker, or to the i-th
// arrival if sorted. resize() keeps the memory, so that a buffer can be reused.
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

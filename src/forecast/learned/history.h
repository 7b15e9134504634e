// History: the run-times of past steps on a logarithmic scale, with what was cut short imputed
// once: what a model is fitted to and what it looks back on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/step_times.h"

namespace drover {

// One worker in one step.
struct PastTime {
  float log_time = 0.0F;  // of kLonger: imputed, at least the bound
  float bound = 0.0F;     // of kLonger: the log of what it is longer than; else log_time
  Known known = Known::kNothing;
};

class History {
 public:
  // Keeps the newest steps that together have at most `most_cells` workers.
  explicit History(size_t most_cells = 2'000'000) : most_cells_(most_cells) {}

  // A step has ended. Workers may only become more.
  void add(Step step, std::span<const PastTime> row);
  // A run-time that was cut short is known after all. Whether the step is still kept.
  bool correct(Step step, WorkerId worker, float log_time);

  // What was imputed counts as seen from here on.
  void believe_all();

  size_t steps() const { return steps_.size(); }
  uint32_t workers() const { return workers_; }
  Step step(size_t index) const { return steps_[index]; }
  // By worker.
  std::span<const PastTime> row(size_t index) const {
    return std::span(cells_).subspan(index * workers_, workers_);
  }
  // The steps begin..end-1. REQUIRES: begin <= end <= steps().
  History part(size_t begin, size_t end) const;

 private:
  size_t most_cells_;
  uint32_t workers_ = 0;
  std::vector<Step> steps_;
  std::vector<PastTime> cells_;
};

}  // namespace drover

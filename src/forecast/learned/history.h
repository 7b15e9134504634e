// History: logs of the run-times of past steps, with censored ones imputed. Models are fitted to it
// and condition on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/step_times.h"

namespace drover {

// One worker in one step.
struct PastTime {
  float log_time = 0.0F;  // of kLonger: the imputed value, at least `bound`
  float bound = 0.0F;     // of kLonger: log of the lower bound; otherwise log_time
  Known known = Known::kNothing;
};

class History {
 public:
  // Keeps the newest steps with at most `most_cells` run-times in total.
  explicit History(size_t most_cells = 2'000'000) : most_cells_(most_cells) {}

  // Adds a step that has ended. The number of workers may only grow.
  void add(Step step, std::span<const PastTime> row);
  // Replaces an imputed run-time by the true one, which came late. Returns false if there is none.
  bool correct(Step step, WorkerId worker, float log_time);

  // Marks all imputed run-times as known.
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

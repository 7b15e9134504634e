// RecentSteps: the known run-times of the last steps.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "core/step_times.h"

namespace drover {

class RecentSteps {
 public:
  // REQUIRES: limit >= 1.
  explicit RecentSteps(size_t limit) : limit_(limit) {}

  void learn(const StepTimes& times) {
    if (steps_.size() == limit_) {
      steps_.push_back(std::move(steps_.front()));  // reuses its memory
      steps_.pop_front();
      steps_.back() = times;
    } else {
      steps_.push_back(times);
    }
  }

  // Replaces a bound by the run-time, which came late. Returns the index in steps() of the changed
  // step; nothing if the step is too old or has no such bound.
  std::optional<size_t> learn_late(Step step, WorkerId worker, double seconds) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      StepTimes& times = steps_[i];
      if (times.step != step || worker >= times.known.size()) continue;
      if (times.known[worker] != Known::kLonger) continue;
      times.known[worker] = Known::kArrived;
      times.seconds[worker] = seconds;
      return i;
    }
    return std::nullopt;
  }

  const std::deque<StepTimes>& steps() const { return steps_; }  // the oldest first
  void forget() { steps_.clear(); }

 private:
  const size_t limit_;
  std::deque<StepTimes> steps_;
};

// The first arrivals of a step, ascending: arrived[k-1] is the time of the k-th gradient. Arrivals
// later than the smallest bound are omitted, because their rank is not known.
void first_arrivals(const StepTimes& times, std::vector<double>& arrived);

// The number of workers that took part in the step.
uint32_t participants(const StepTimes& times);

}  // namespace drover

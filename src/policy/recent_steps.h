// RecentSteps: the last steps' run-times as far as they became known, for policies that look back.
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
      steps_.push_back(std::move(steps_.front()));  // its memory is used again
      steps_.pop_front();
      steps_.back() = times;
    } else {
      steps_.push_back(times);
    }
  }

  // What was a bound becomes a run-time, if the step is still remembered. Returns which of steps()
  // changed, if one did.
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

// The first arrivals of a step, ascending: arrived[k-1] is when the k-th gradient came. They end
// before the first that may have been overtaken by somebody of whom only a bound is known.
void first_arrivals(const StepTimes& times, std::vector<double>& arrived);

// How many workers took part in the step.
uint32_t participants(const StepTimes& times);

}  // namespace drover

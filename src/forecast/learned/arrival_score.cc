#include "forecast/learned/arrival_score.h"

#include <algorithm>

#include "core/check.h"
#include "forecast/scores.h"
#include "forecast/told.h"

namespace drover {

bool ArrivalScore::read(const StepTimes& times, std::span<const WorkerId> workers) {
  arrivals_.clear();
  bound_ = 0.0;
  count_ = workers.size();
  for (const WorkerId worker : workers) {
    if (worker >= times.seconds.size() || !tells_something(times, worker)) return false;
    if (times.known[worker] == Known::kArrived) {
      arrivals_.push_back(times.seconds[worker]);
    } else {
      bound_ = std::max(bound_, times.seconds[worker]);
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  return true;
}

std::span<const float> ArrivalScore::foretold_at(const Forecast& foretold, size_t rank) {
  DROVER_CHECK(foretold.sorted);
  DROVER_CHECK(foretold.workers == count_);
  column_.resize(foretold.samples);
  for (uint32_t k = 0; k < foretold.samples; ++k) column_[k] = foretold.row(k)[rank];
  std::sort(column_.begin(), column_.end());
  return column_;
}

double ArrivalScore::mean_crps(const Forecast& foretold) {
  double sum = 0.0;
  for (size_t rank = 0; rank < count_; ++rank) {
    const bool arrived = rank < arrivals_.size();
    sum += crps(foretold_at(foretold, rank), arrived ? arrivals_[rank] : bound_, !arrived);
  }
  return std::max(0.0, sum / static_cast<double>(count_));
}

}  // namespace drover

#include "forecast/learned/arrival_score.h"

#include <algorithm>

#include "core/check.h"
#include "forecast/run_time.h"
#include "forecast/scores.h"

namespace drover {

bool ArrivalScore::read(const StepTimes& times, std::span<const WorkerId> workers) {
  arrivals_.clear();
  bound_ = 0.0;
  count_ = workers.size();
  for (const WorkerId worker : workers) {
    if (worker >= times.seconds.size() || !has_run_time(times, worker)) return false;
    if (times.known[worker] == Known::kArrived) {
      arrivals_.push_back(times.seconds[worker]);
    } else {
      bound_ = std::max(bound_, times.seconds[worker]);
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  return true;
}

std::span<const float> ArrivalScore::predicted_at(const Forecast& predicted, size_t rank) {
  DROVER_CHECK(predicted.sorted);
  DROVER_CHECK(predicted.workers == count_);
  column_.resize(predicted.samples);
  for (uint32_t k = 0; k < predicted.samples; ++k) column_[k] = predicted.row(k)[rank];
  std::sort(column_.begin(), column_.end());
  return column_;
}

double ArrivalScore::mean_crps(const Forecast& predicted) {
  double sum = 0.0;
  for (size_t rank = 0; rank < count_; ++rank) {
    const bool arrived = rank < arrivals_.size();
    sum += crps(predicted_at(predicted, rank), arrived ? arrivals_[rank] : bound_, !arrived);
  }
  return std::max(0.0, sum / static_cast<double>(count_));
}

}  // namespace drover

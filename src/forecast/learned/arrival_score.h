// ArrivalScore: how well the order of arrivals of some workers was foretold, taking them for a
// small cluster: when the first is there, the second, ... That is what a cutoff is chosen by. A
// forecaster can be good about each worker and bad about that.
#pragma once

#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecast.h"

namespace drover {

class ArrivalScore {
 public:
  // Whether all of these took part; if somebody died, the ranks are others, and nothing can be
  // told.
  bool read(const StepTimes& times, std::span<const WorkerId> workers);

  // Those who arrived, ascending; the others are beyond a bound.
  std::span<const double> arrivals() const { return arrivals_; }

  // Samples of the arrival at this rank, ascending; they stay until the next call.
  // REQUIRES: foretold is sorted and of the workers that were read.
  std::span<const float> foretold_at(const Forecast& foretold, size_t rank);
  // CRPS (scores.h), mean over the ranks. REQUIRES: as foretold_at.
  double mean_crps(const Forecast& foretold);

 private:
  std::vector<double> arrivals_;
  double bound_ = 0.0;
  size_t count_ = 0;
  std::vector<float> column_;
};

}  // namespace drover

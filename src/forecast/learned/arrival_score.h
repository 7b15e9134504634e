// ArrivalScore: scores how well a forecast predicted the times of the first, second, ... arrival of
// some workers, as if they were a small cluster. A cutoff is chosen by these times. A forecaster
// can be good for each worker and bad for the order statistics.
#pragma once

#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecast.h"

namespace drover {

class ArrivalScore {
 public:
  // Reads the run-times of these workers. Returns false if one of them took no part: ranks then do
  // not match the forecast, and nothing can be scored.
  bool read(const StepTimes& times, std::span<const WorkerId> workers);

  // Run-times of the workers that arrived, ascending. The others are censored.
  std::span<const double> arrivals() const { return arrivals_; }

  // Samples of the arrival at this rank, ascending, valid until the next call.
  // REQUIRES: `predicted` is sorted, and a forecast for the workers of read().
  std::span<const float> predicted_at(const Forecast& predicted, size_t rank);
  // CRPS (scores.h), mean over the ranks. REQUIRES: as for predicted_at().
  double mean_crps(const Forecast& predicted);

 private:
  std::vector<double> arrivals_;
  double bound_ = 0.0;
  size_t count_ = 0;
  std::vector<float> column_;
};

}  // namespace drover

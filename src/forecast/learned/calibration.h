// Calibration: measures how accurate a forecaster is on a record of steps.
//
// Coverage: a central 90 % interval should contain 90 % of the run-times. The rank of a run-time
// among the S samples of its forecast gives a position u between 0 and 1, known to within a cell of
// width 1 / (S + 1) (wider if samples equal the run-time). The run-time counts as covered by the
// share of the cell that lies in the interval. So a correct forecast has exactly the nominal
// coverage on average, for any number of samples.
//
// For a censored run-time only u >= u(bound) is known. It counts by the share of [u(bound), 1] that
// lies in the interval. A correct forecast still has the nominal coverage. An error beyond the
// bounds cannot be detected. Ignoring censored run-times instead would favour forecasts that are
// too short.
#pragma once

#include <cstdint>
#include <span>

#include "core/step_times.h"
#include "forecast/forecaster.h"

namespace drover {

// Means over many run-times, or many order statistics; NaN if there are none.
struct Calibration {
  uint64_t judged = 0;
  double covered_50 = 0.0;  // share of the observations in the central 50 % interval
  double covered_90 = 0.0;
  double covered_99 = 0.0;
  double crps = 0.0;  // mean of logs, see scores.h; 0.1 is an error of about 10 %
};

struct ForecasterCalibration {
  uint64_t steps = 0;  // judged steps
  Calibration
      workers;        // of run-times per worker; empty if the forecaster has order statistics only
  Calibration order;  // of the first, second, ... arrival, by which cutoffs are chosen
};

// The share of [lo, hi] that lies in the central interval of `level`. REQUIRES: lo < hi.
double share_covered(double lo, double hi, double level);

// Lets the forecaster learn the whole record, and judges its forecasts of the steps from index
// `from` on, each made before the forecaster learns that step. If these steps have more than
// `most_times` run-times, it judges only every n-th step. It skips steps before the forecaster is
// ready.
ForecasterCalibration calibrate(Forecaster& forecaster, std::span<const StepTimes> record,
                                size_t from, size_t most_times = 50'000);

}  // namespace drover

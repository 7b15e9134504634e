// Calibration: how well a forecaster forecasts, found out by walking it through a record.
//
// Coverage: a central interval of 90 % should hold 90 % of what happens. Where among the S samples
// of a forecast the truth came to lie is a place u between 0 and 1, known to within a cell of width
// 1 / (S + 1) (wider, if samples equal the truth); the truth counts as covered with the share of
// that cell which the interval covers. So a right forecast covers exactly what it says, on average,
// however few its samples are.
//
// Of a run-time that was cut short only u >= u(bound) is known. It counts with the share of what is
// left, u(bound) to 1, that the interval covers: a bound beyond the interval is outside for
// certain, a bound that tells nothing counts as the forecast itself says. A right forecast still
// covers what it says; one that is wrong only beyond the bounds is not found out, since nothing
// could. To leave such run-times out instead would favour who forecasts too short.
#pragma once

#include <cstdint>
#include <span>

#include "core/step_times.h"
#include "forecast/forecaster.h"

namespace drover {

// Over many run-times, or many order statistics.
struct Calibration {
  uint64_t judged = 0;
  double covered_50 = 0.0;  // share of what happened inside the central 50 % interval; NaN: none
  double covered_90 = 0.0;
  double covered_99 = 0.0;
  double crps = 0.0;  // mean, of logs: see scores.h. 0.1 is about: 10 % off
};

struct ForecasterCalibration {
  uint64_t steps = 0;   // that were judged
  Calibration workers;  // of each worker's run-time; nothing judged if only order is forecast
  Calibration order;    // of the first to arrive, the second, ...: what cutoffs are chosen by
};

// How much of [lo, hi], where the truth's u lies, is in the central interval of `level`.
// REQUIRES: lo < hi.
double share_covered(double lo, double hi, double level);

// Tells the forecaster the whole record and asks it about the steps from index `from` on, before it
// is told of them; about every n-th, if all would be more than `most_times` run-times. Steps that
// it is not ready for are not judged.
ForecasterCalibration calibrate(Forecaster& forecaster, std::span<const StepTimes> record,
                                size_t from, size_t most_times = 50'000);

}  // namespace drover

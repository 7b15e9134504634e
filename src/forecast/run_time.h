// Valid run-times: positive and finite. Other values in a record are ignored.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/step_times.h"

namespace drover {

inline bool is_run_time(double seconds) { return std::isfinite(seconds) && seconds > 0.0; }

// REQUIRES: worker < times.seconds.size().
inline bool has_run_time(const StepTimes& times, WorkerId worker) {
  return times.known[worker] != Known::kNothing && is_run_time(times.seconds[worker]);
}

// ENSURES: the result is positive and finite, also after overflow or underflow.
inline float to_run_time(double seconds) {
  return static_cast<float>(std::clamp<double>(seconds, std::numeric_limits<float>::min(),
                                               std::numeric_limits<float>::max()));
}

// ", 3 % of run-times cut short", the end of a forecast's basis.
inline std::string censored_share_text(double cut_short, double all) {
  const double percent = all > 0.0 ? 100.0 * cut_short / all : 0.0;
  return ", " + std::to_string(std::lround(percent)) + " % of run-times cut short";
}

}  // namespace drover

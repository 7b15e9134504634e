#include "sim/what_was_seen.h"

#include <cmath>

namespace drover {

StepTimes what_was_seen(Step step, std::span<const double> run_times, const StepClose& close) {
  StepTimes seen;
  seen.step = step;
  seen.elapsed = close.elapsed;
  seen.contributors = close.contributors;
  seen.seconds.resize(run_times.size(), 0.0);
  seen.known.resize(run_times.size(), Known::kNothing);
  for (size_t worker = 0; worker < run_times.size(); ++worker) {
    if (std::isnan(run_times[worker])) continue;
    const bool arrived = run_times[worker] <= close.elapsed;
    seen.known[worker] = arrived ? Known::kArrived : Known::kLonger;
    seen.seconds[worker] = arrived ? run_times[worker] : close.elapsed;
  }
  return seen;
}

}  // namespace drover

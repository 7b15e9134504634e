// What a step shows of everybody's run-times: the one door through which a replay or a simulation,
// which know them all, tells a policy about them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "policy/close_rule.h"

namespace drover {

// Who was there when the step closed has a run-time; of whoever was not, only that it takes longer
// than the step did is known. `run_times` is by worker; NaN: it took no part. Whatever is in
// `run_times` beyond the close has no influence on the result.
StepTimes what_was_seen(Step step, std::span<const double> run_times, const StepClose& close);

// Somebody of whom only a bound was known has finished.
struct LateArrival {
  Step step = 0;
  WorkerId worker = 0;
  double run_time = 0.0;
};

// Probes: some of those who were cut are let finish all the same, for the sake of knowing. A probe
// takes as long as its worker does: not before that much time has passed is anything heard of it.
class Probes {
 public:
  // The share of those cut in a step that is let finish, drawn from seed, step and worker, never
  // from run-times. REQUIRES: 0 <= share <= 1.
  Probes(double share, uint64_t seed);

  // A step that began at `opened` has closed. Moments come in order, in the unit of the run-times.
  void step_closed(Step step, double opened, std::span<const double> run_times,
                   const StepClose& close);
  // Who has finished by `now` and was not told of yet, in the order of finishing. Whatever takes
  // longer has no influence on the result.
  std::vector<LateArrival> finished_by(double now);

 private:
  struct Probe {
    double finishes = 0.0;
    LateArrival arrival;
  };

  const double share_;
  const uint64_t seed_;
  std::vector<Probe> under_way_;  // a heap: the next to finish is the first
};

}  // namespace drover

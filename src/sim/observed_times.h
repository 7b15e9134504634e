// Observed run-times: what a policy may learn of a step. Replays and simulations know all run-times
// in advance, and pass them to a policy only through these functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "policy/close_rule.h"

namespace drover {

// The observations of a step. A worker that arrived before the step closed has a run-time. Of the
// other workers it is only known that they take longer than the step did. `run_times` is by worker;
// NaN: it took no part. ENSURES: the result does not depend on run-times beyond the close.
StepTimes observed_times(Step step, std::span<const double> run_times, const StepClose& close);

// A worker of which only a bound was known has finished.
struct LateArrival {
  Step step = 0;
  WorkerId worker = 0;
  double run_time = 0.0;
};

// Probes: stragglers that finish their gradient, so that the policy learns their run-time. The
// run-time of a probe becomes known when the worker finishes.
class Probes {
 public:
  // `share`: share of the stragglers that finish. They are drawn from seed, step and worker,
  // independently of run-times. REQUIRES: 0 <= share <= 1.
  Probes(double share, uint64_t seed);

  // A step that opened at `opened` has closed. Times are in the unit of the run-times, and must not
  // decrease from call to call. `requested`, ascending: workers that finish because the policy asks
  // for it (Choice::probes), in addition to those drawn.
  void step_closed(Step step, double opened, std::span<const double> run_times,
                   const StepClose& close, std::span<const WorkerId> requested = {});
  // Whether a requested probe is still running at `now`: it takes no part in a step that opens.
  bool is_busy(WorkerId worker, double now) const;
  // Step `step` has closed at `now`: requested probes of earlier steps that still run are stopped.
  void stop_requested(Step step, double now);
  // The probes that have finished by `now` and were not returned yet, in the order of finishing.
  // ENSURES: the result does not depend on probes that take longer.
  std::vector<LateArrival> finished_by(double now);

 private:
  struct Probe {
    double finishes = 0.0;
    bool requested = false;
    LateArrival arrival;
  };

  const double share_;
  const uint64_t seed_;
  std::vector<Probe> under_way_;  // a heap: the next to finish is the first
};

}  // namespace drover

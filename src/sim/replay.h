// Replay: applies a policy to recorded run-times, and compares it with waiting for all workers and
// with the oracle (the best cutoff of each step). Recorded run-times do not react to the cutoff, so
// a replay measures decisions, not the effect on training.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "policy/catalogue.h"
#include "policy/close_rule.h"
#include "policy/decider.h"
#include "sim/observed_times.h"
#include "store/trace.h"

namespace drover {

struct ReplaySettings {
  Step warmup = 20;       // steps at the beginning that are not measured
  double overhead = 0.0;  // time of a step in addition to waiting, in the trace's unit
  double noise = 0.0;     // noise scale of the gradients, in gradients; 0: unknown
  double probe = 0.0;     // share of stragglers that finish, so that the policy learns their times
  uint64_t seed = 1;      // of the choice of probes
};

// Closes of the steps of a trace that need no policy.
struct OracleCloses {
  std::vector<StepClose> best;  // by step: the cutoff c that maximises c / (overhead + x_(c))
  std::vector<StepClose> all;   // by step: waiting for all workers
};
OracleCloses oracle_of(const Trace& trace, double overhead);

// What happened in one step of a replay.
struct ReplayedStep {
  Step step = 0;                      // counted from the first one replayed
  uint32_t alive = 0;                 // workers recorded in this step
  const Choice& choice;               // the policy's decision
  StepClose close;                    // its outcome
  StepClose best;                     // the oracle's outcome
  const StepTimes& seen;              // what the policy learns of the step
  const std::vector<bool>& included;  // by worker: its gradient was used
  std::span<const LateArrival> late;  // probes of earlier steps, learned before the decision
};

// All but the first are over the steps after the warm-up.
struct ReplayResult {
  Step steps = 0;
  uint32_t workers = 0;
  Step measured_steps = 0;
  double throughput_total = 0.0;   // sum of gradients / sum of (overhead + elapsed)
  double throughput_median = 0.0;  // over steps, of gradients / (overhead + elapsed)
  double oracle_share_total = 0.0;
  double oracle_share_median = 0.0;
  double time_vs_sync = 0.0;   // sum of (overhead + elapsed) / the same when waiting for all
  double cutoff_mean = 0.0;    // gradients used per step
  double inclusion_min = 0.0;  // least over workers of gradients used / recorded
  double reviews_mean = 0.0;   // reviews per step
  Duration decision_p50{};     // learning from the last step and deciding this one, with reviews
  Duration decision_p99{};
};

// Replays the trace. The decider learns only what observed_times() and Probes return. `clock` times
// the decisions. `listen` is called for each step, and its error ends the replay. REQUIRES:
// trace.steps() > settings.warmup; `oracle` belongs to this trace and overhead.
Result<ReplayResult> replay(const Trace& trace, const OracleCloses& oracle, Decider& decider,
                            const ReplaySettings& settings, const std::function<TimePoint()>& clock,
                            const std::function<Status(const ReplayedStep&)>& listen);

// Returns an error if no step is left after the warm-up.
Status check_long_enough(const Trace& trace, Step warmup);

// The run-times of future steps, for the oracle policy. REQUIRES: the trace outlives the result.
Foresight foresight_of(const Trace& trace);

}  // namespace drover

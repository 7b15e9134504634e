// Replay: what a policy would have done with recorded run-times, beside waiting for everybody and
// beside the best that could have been done in hindsight.
//
// Recorded run-times do not react to the cutoff: a replay judges decisions, not a training.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "policy/catalogue.h"
#include "policy/close_rule.h"
#include "policy/decider.h"
#include "sim/what_was_seen.h"
#include "store/trace.h"

namespace drover {

struct ReplaySettings {
  Step warmup = 20;       // steps at the beginning that no number below counts
  double overhead = 0.0;  // what a step costs beyond waiting, in the trace's unit
  double noise = 0.0;     // noise scale of the gradients, in gradients; 0: unknown
  double probe = 0.0;     // share of those cut that is let finish, for the policy to know
  uint64_t seed = 1;      // of who that is
};

// How the steps of a trace end without any policy.
struct OracleShares {
  std::vector<StepClose> best;  // by step: the cutoff c that maximises c / (overhead + x_(c))
  std::vector<StepClose> all;   // by step: waiting for everybody
};
OracleShares hindsight_of(const Trace& trace, double overhead);

// What happened in one step of a replay.
struct ReplayedStep {
  Step step = 0;                      // counted from the first one replayed
  uint32_t alive = 0;                 // workers recorded in this step
  const Choice& choice;               // what was decided
  StepClose close;                    // what came of it
  StepClose best;                     // what would have been best
  const StepTimes& seen;              // what the policy is told of it
  const std::vector<bool>& included;  // by worker: its gradient was used
  std::span<const LateArrival> late;  // told before it was decided: probes of earlier steps
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
  double time_vs_sync = 0.0;   // sum of (overhead + elapsed) / the same when waiting for everybody
  double cutoff_mean = 0.0;    // gradients used
  double inclusion_min = 0.0;  // of the worker least used: used / recorded
  double reviews_mean = 0.0;   // times a step was decided again
  Duration decision_p50{};  // learning from the last step and deciding about this one, reviews too
  Duration decision_p99{};
};

// Walks the trace. The decider is told no more than what_was_seen() and Probes let through. `clock`
// times the decisions; `listen` hears of every step, and its error ends the replay. REQUIRES:
// trace.steps() > settings.warmup; hindsight is that of this trace and overhead.
Result<ReplayResult> replay(const Trace& trace, const OracleShares& hindsight, Decider& decider,
                            const ReplaySettings& settings, const std::function<TimePoint()>& clock,
                            const std::function<Status(const ReplayedStep&)>& listen);

// That enough steps are left after the warm-up.
Status check_long_enough(const Trace& trace, Step warmup);

// What only a replay can give: the run-times of steps to come. The trace must outlive it.
Foresight foresight_of(const Trace& trace);

}  // namespace drover

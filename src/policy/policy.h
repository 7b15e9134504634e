// Policy: decides for each step how long the shards wait for gradients, and gives the reason.
//
// Policies are pure: no clock, socket, thread or random device. A replay, the simulator and a live
// coordinator run the same code. A policy learns only through learn() and learn_late(), so it never
// sees a run-time that a real run would not have seen.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/run_record.h"
#include "core/step_times.h"

namespace drover {

inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

// The unit of the times that a policy sees. Policies need it only for the text of a reason.
enum class TimeUnit : uint8_t {
  kSeconds,  // a run or a simulation
  kUnknown,  // a replay: a trace has no unit
};

// The inputs of a decision about one step.
struct Situation {
  Step step = 0;
  std::span<const WorkerId> alive;  // workers that can contribute, ascending; not empty
  double overhead = 0.0;            // time of a step beyond waiting for gradients
  double noise = 0.0;               // noise scale of the gradients, in gradients; 0: unknown
  // Workers of the run: `alive`, and those that are busy with an earlier step. 0: as many as alive.
  uint32_t members = 0;
  // Size of each worker's work in this step, in default mini-batches, in the order of `alive`.
  // Empty: 1 each.
  std::span<const double> shares{};
  double fixed = 0.0;  // part of a run-time that does not depend on the share
  TimeUnit unit = TimeUnit::kSeconds;
};

// When to ask the policy again about a step that is still open: after `arrivals` gradients, or `at`
// this time since the step opened, whichever comes first. By default never.
struct Review {
  uint32_t arrivals = ~uint32_t{0};
  double at = kNoTimeLimit;
};

// The arrivals so far in a step that is still open.
struct StepProgress {
  Step step = 0;
  double now = 0.0;                 // since the step opened
  std::span<const double> arrived;  // run-times in the order of `alive`; infinity: not arrived yet
  TimeUnit unit = TimeUnit::kSeconds;
};

// How long a step waits. It closes when `cutoff` gradients have arrived. Once `time_limit` has
// passed since it opened, `at_least` gradients are enough.
struct Choice {
  uint32_t cutoff = 0;
  double time_limit = kNoTimeLimit;  // in the unit of the run-times
  uint32_t at_least = 1;
  std::string reason;  // one line, for people: "static: wait for 94 of 100 (share 0.943)"
  std::vector<ExpectedArrival> expected = {};  // the forecast; empty: the choice used none
  Review review{};
  // Workers that finish even if the step closes without them, so that their run-times become known.
  // They have until the next step closes, and take no part in it.
  std::vector<WorkerId> probes = {};
  bool model_stale = false;  // the learned model is disabled: other forecasters score better
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Choice decide(const Situation& situation) = 0;
  // Decides again about the step of the last decide(). A cutoff that has been reached already
  // closes the step now. Nothing: the last choice stands, and there is no further review.
  virtual std::optional<Choice> reconsider(const StepProgress&) { return std::nullopt; }
  // Reports what is known of a step when it ends. Steps come in order.
  virtual void learn(const StepTimes& times) = 0;
  // Reports the run-time of a worker that learn() reported as kLonger: its gradient came late.
  virtual void learn_late(Step step, WorkerId worker, double seconds) = 0;
};

}  // namespace drover

// Policy: decides at every step how long to wait, and says why.
//
// Pure: no clock, socket, thread or random device. A replay, the simulator and a live coordinator
// run the same code. A policy learns through learn() and learn_late() alone: nobody tells it a
// run-time that a real run would not have seen.
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

// What a policy may know when it decides about a step.
struct Situation {
  Step step = 0;
  std::span<const WorkerId> alive;  // who can contribute, in order; not empty
  double overhead = 0.0;            // what a step costs beyond waiting for gradients
  double noise = 0.0;               // noise scale of the gradients, in gradients; 0: unknown
  uint32_t members =
      0;  // workers of the run, `alive` and those who are busy otherwise; 0: as alive
  // How much of a usual mini-batch each has to do in this step, in the order of `alive`; empty: all
  // a whole one.
  std::span<const double> shares{};
  double fixed = 0.0;  // of a run-time: what does not depend on the share
};

// When a policy wants to be asked again about a step that is still open: when so many have arrived,
// or at that time since its opening, whichever is first. Never, if it does not say.
struct Review {
  uint32_t arrivals = ~uint32_t{0};
  double at = kNoTimeLimit;
};

// What a step that is still open has shown.
struct StepProgress {
  Step step = 0;
  double now = 0.0;                 // since its opening
  std::span<const double> arrived;  // run-times by the order of `alive`; infinity: not here yet
};

// How long a step waits: until `cutoff` gradients are there; or, when `time_limit` has passed since
// it opened, only for the first `at_least`.
struct Choice {
  uint32_t cutoff = 0;
  double time_limit = kNoTimeLimit;  // in the unit of the run-times (seconds, in a real run)
  uint32_t at_least = 1;
  std::string reason;  // one line, for people: "static: 94 % of 100 workers alive"
  std::vector<ExpectedArrival> expected = {};  // what it rests on; empty: not on a forecast
  Review review{};
  bool model_stale = false;  // the learned model is disabled, since others forecast better
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Choice decide(const Situation& situation) = 0;
  // Decides again about the step that decide() was last asked about. A choice of as many as are
  // here closes it now; nothing means that the last choice stands, without another review.
  virtual std::optional<Choice> reconsider(const StepProgress&) { return std::nullopt; }
  // A step has ended: this became known. Steps come in order.
  virtual void learn(const StepTimes& times) = 0;
  // The run-time of somebody told as kLonger is known after all: it came late.
  virtual void learn_late(Step step, WorkerId worker, double seconds) = 0;
};

}  // namespace drover

// Policy: decides at every step how long to wait, and says why.
//
// Pure: no clock, socket, thread or random device. A replay, the simulator and a live coordinator
// run the same code. A policy learns through learn() and learn_late() alone: nobody tells it a
// run-time that a real run would not have seen.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "core/ids.h"
#include "core/step_times.h"

namespace drover {

inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

// What a policy may know when it decides about a step.
struct Situation {
  Step step = 0;
  std::span<const WorkerId> alive;  // who can contribute, in order; not empty
  double overhead = 0.0;            // what a step costs beyond waiting for gradients
  double noise = 0.0;               // noise scale of the gradients, in gradients; 0: unknown
};

// How long a step waits: until `cutoff` gradients are there; or, when `time_limit` has passed since
// it opened, only for the first `at_least`.
struct Choice {
  uint32_t cutoff = 0;
  double time_limit = kNoTimeLimit;  // in the unit of the run-times (seconds, in a real run)
  uint32_t at_least = 1;
  std::string reason;  // one line, for people: "static: 94 % of 100 workers alive"
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual Choice decide(const Situation& situation) = 0;
  // A step has ended: this became known. Steps come in order.
  virtual void learn(const StepTimes& times) = 0;
  // The run-time of somebody told as kLonger is known after all: it came late.
  virtual void learn_late(Step step, WorkerId worker, double seconds) = 0;
};

}  // namespace drover

// The rule by which a step closes under a choice, given all run-times. A replay applies it to each
// step, and shards must behave the same.
#pragma once

#include <cstdint>
#include <span>

#include "policy/policy.h"

namespace drover {

struct StepClose {
  uint32_t contributors = 0;
  double elapsed = 0.0;
};

// REQUIRES: `sorted` ascends and is not empty; 1 <= choice.cutoff <= its size.
StepClose close_of(const Choice& choice, std::span<const double> sorted);

// The same for a choice made at `now` inside the step: all arrivals until now count, and the step
// closes at `now` at the earliest.
StepClose close_of(const Choice& choice, std::span<const double> sorted, double now);

// The time of the choice's review, if the step is still open then.
double review_of(const Choice& choice, std::span<const double> sorted);

}  // namespace drover

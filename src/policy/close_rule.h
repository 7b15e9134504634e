// How a step ends under a choice when everybody's run-time is given: what a replay does to each
// step, and what shards must agree with.
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

// The same of a choice made at `now` in the midst of the step: whoever is here counts, and nothing
// ends before now.
StepClose close_of(const Choice& choice, std::span<const double> sorted, double now);

// When the choice is to be reviewed, if the step is still open then.
double review_of(const Choice& choice, std::span<const double> sorted);

}  // namespace drover

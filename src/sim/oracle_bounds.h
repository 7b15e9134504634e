// OracleBounds: the most that any rule could have earned on a trace, and the best that a
// rule without foresight could have.
//
// The total of a run is G / T, the sum of all gradients over the sum of all step times. It is
// largest when every step has the cutoff c that maximises c - lambda (overhead + x_(c)), where
// lambda is that largest total itself. Dinkelbach's iteration finds it in a few passes: begin with
// any lambda, choose the cutoffs, and take their total as the next lambda until it stays. The
// oracle of a replay maximises c / (overhead + x_(c)) step by step, which is less.
//
// A rule that knows no step before it happens is compared with the best constant cutoff and the
// best constant time limit, chosen with all steps known.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "store/trace.h"

namespace drover {

struct OracleBounds {
  double bound = 0.0;       // gradients per time: no rule has more
  uint32_t cutoff = 0;      // the best constant cutoff; fewer where fewer are recorded
  double by_cutoff = 0.0;   // what it earns
  double time_limit = 0.0;  // the best constant time limit; a step has one gradient at least
  double by_time_limit = 0.0;
};

// Over the steps from `first` on. REQUIRES: first < trace.steps(); overhead >= 0.
OracleBounds oracle_bounds(const Trace& trace, double overhead, Step first);

}  // namespace drover

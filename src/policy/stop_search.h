// StopSearch: inside a step, whether to close it now, to wait on as planned, or to plan anew.
//
// With `gradients` here at time t, closing now is worth value(gradients, t). Waiting for the next
// 1, 2, ... or until some later moment is judged by its expected value over what may remain
// (forecast/remaining.h), and so is the plan that the step has. A plan gives way only to one that
// promises a good deal more: every look is another chance to be misled.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "forecast/remaining.h"
#include "policy/objective.h"

namespace drover {

// What a step has got so far. With equal shares a gradient counts 1.
struct Gathered {
  uint32_t arrivals = 0;
  double gradients = 0.0;
  double now = 0.0;
};

// Waits until so many have arrived, and no longer than that.
struct WaitPlan {
  uint32_t arrivals = 0;
  double until = 0.0;
};

struct Found {
  WaitPlan plan;
  bool changed = false;  // it is not the plan there was
  bool closes = false;   // now
  double value = 0.0;    // expected
  double closing = 0.0;  // what closing now is worth
};

// Keeps its buffers, so that deciding again allocates nothing.
class StopSearch {
 public:
  // `shares`: what each missing worker's gradient counts, in the order of remaining.missing();
  // empty: 1. `planned` is to be later than now. REQUIRES: somebody is missing.
  Found best(const Remaining& remaining, std::span<const double> shares, const Gathered& gathered,
             const WaitPlan& planned, const Terms& terms);

 private:
  void choose_limits(const Remaining& remaining, double planned);
  void add_row(const Remaining& remaining, uint32_t row, std::span<const double> shares,
               const Gathered& gathered, const WaitPlan& planned, const Terms& terms);

  std::vector<float> pooled_;
  std::vector<float> limits_;                  // ascending
  std::vector<double> bucket_;                 // by limit: what comes up to it, of one row
  std::vector<std::pair<float, float>> next_;  // (time, share) of one row
  std::vector<double> by_limit_;               // expected value
  std::vector<double> by_count_;               // the same, by arrivals waited for - 1
  double as_planned_ = 0.0;
};

}  // namespace drover

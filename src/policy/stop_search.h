// StopSearch: decides inside a step whether to close it now, to keep its plan, or to change it.
//
// With `gradients` collected at time t, closing now has value(gradients, t). The alternatives are
// to wait for the next 1, 2, ... arrivals, to wait until a later time, and to keep the plan. Each
// has an expected value over the remaining arrivals (forecast/remaining.h). A new plan replaces the
// old one only if its value is higher by a margin, because each review is subject to noise.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "forecast/remaining.h"
#include "policy/objective.h"

namespace drover {

// The arrivals of a step so far.
struct Collected {
  uint32_t arrivals = 0;
  double gradients = 0.0;  // sum of their shares
  double now = 0.0;
};

// Wait for this number of arrivals in total, but no longer than `until`.
struct WaitPlan {
  uint32_t arrivals = 0;
  double until = 0.0;
};

struct StopDecision {
  WaitPlan plan;
  bool changed = false;  // differs from the plan before
  bool closes = false;   // close the step now
  double value = 0.0;    // expected value of `plan`
  double closing = 0.0;  // value of closing now
};

// Keeps its buffers, so that deciding again allocates nothing.
class StopSearch {
 public:
  // `shares` are the weights of the missing workers' gradients, in the order of
  // remaining.missing(); empty: 1 each. REQUIRES: at least one worker is missing; `planned` ends
  // later than now.
  StopDecision best(const Remaining& remaining, std::span<const double> shares,
                    const Collected& collected, const WaitPlan& planned, const Terms& terms);

 private:
  void choose_limits(const Remaining& remaining, double planned);
  void add_row(const Remaining& remaining, uint32_t row, std::span<const double> shares,
               const Collected& collected, const WaitPlan& planned, const Terms& terms);

  std::vector<float> pooled_;
  std::vector<float> limits_;                  // ascending
  std::vector<double> bucket_;                 // of one row: shares that arrive between limits
  std::vector<std::pair<float, float>> next_;  // of one row: (time, share)
  std::vector<double> by_limit_;               // expected value of waiting until a limit
  std::vector<double> by_count_;               // the same for a number of arrivals, minus 1
  double as_planned_ = 0.0;
};

}  // namespace drover

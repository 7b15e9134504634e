// Kaplan-Meier estimator: the distribution of weighted run-times, some of them censored.
//
//   S(t) = product over run-times t_i <= t of (1 - w_i / R_i),  R_i = weight of all observations
//   known to be t_i or longer.
//
// A censored run-time is "at risk" up to its bound and then leaves the risk set without an event.
// At equal times it leaves after the events.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace drover {

struct Observation {
  double time = 0.0;      // the run-time, or its lower bound
  bool censored = false;  // only the bound is known
  double weight = 1.0;    // positive
};

class SurvivalCurve {
 public:
  // Replaces the curve. REQUIRES: `sorted` ascends in time.
  void fit(std::span<const Observation> sorted);

  // The times at which the curve steps, and P(x <= that time).
  std::span<const double> times() const { return times_; }
  std::span<const double> cumulated() const { return cumulated_; }

  bool empty() const { return size_ == 0; }
  // P(x > t). Beyond the last observation it is left_over().
  double survival(double t) const;
  // P(x > last()): the probability beyond the last bound. 1 for an empty curve.
  double left_over() const { return cumulated_.empty() ? 1.0 : 1.0 - cumulated_.back(); }
  // The largest observation, a run-time or a bound. 0 for an empty curve.
  double last() const { return last_; }
  // The smallest t with P(x <= t) >= u; infinity if u > 1 - left_over().
  double quantile(double u) const;

 private:
  std::vector<double> times_;
  std::vector<double> cumulated_;
  std::vector<double> at_risk_;  // scratch
  size_t size_ = 0;
  double last_ = 0.0;
};

// The same for observations in any order.
SurvivalCurve kaplan_meier(std::vector<Observation> observations);

}  // namespace drover

// Kaplan-Meier: the distribution of run-times of which some were cut short, with weights.
//
//   S(t) = product over run-times t_i <= t of (1 - w_i / R_i),  R_i = weight of all known to have
//   taken t_i or longer.
//
// A run-time that was cut short counts as "at risk" up to its bound and then leaves without having
// happened; at equal times it leaves last.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace drover {

struct Observation {
  double time = 0.0;      // or the bound
  bool censored = false;  // only known to be longer
  double weight = 1.0;    // positive
};

class SurvivalCurve {
 public:
  // Forgets what was before; keeps its memory. REQUIRES: `sorted` ascends in time.
  void fit(std::span<const Observation> sorted);

  // Where the curve steps, and P(x <= that time).
  std::span<const double> times() const { return times_; }
  std::span<const double> cumulated() const { return cumulated_; }

  bool empty() const { return size_ == 0; }
  // P(x > t); beyond the last observation, what is left there.
  double survival(double t) const;
  // Probability that no observation accounts for: beyond the last bound. 1 for an empty curve.
  double left_over() const { return cumulated_.empty() ? 1.0 : 1.0 - cumulated_.back(); }
  // The largest observation, a run-time or a bound. 0 for an empty curve.
  double last() const { return last_; }
  // The smallest t with P(x <= t) >= u; infinity if u falls into what is left over.
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

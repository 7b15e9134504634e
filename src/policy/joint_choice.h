// JointSearch: the cutoff and time limit with the most expected gradients per expected time.
//
// A step with cutoff c and limit L ends with c gradients at x_(c) if that is by L, else at L with
// those that are there. Over weighted samples it maximises
//
//   E[gradients] / (overhead + E[time])
//
// the ratio of expectations, since a run earns the sum of its gradients over the sum of its times.
// Limit and cutoff are improved in turns: not every pair is tried.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forecast/forecast.h"

namespace drover {

struct JointTerms {
  double overhead = 0.0;
  std::optional<double> noise;  // present and positive: gradients count as progress (objective.h)

  double progress(double gradients) const {
    return noise && *noise > 0.0 ? gradients * (*noise + 1.0) / (*noise + gradients) : gradients;
  }
};

struct JointPlan {
  uint32_t cutoff = 0;
  double time_limit = 0.0;  // kNoTimeLimit: none
  uint32_t at_least = 1;
  double gradients = 0.0;  // expected, as the terms count them
  double time = 0.0;       // expected, the overhead included
  double rate() const { return gradients / time; }
};

// Samples of the arrivals of a step.
struct JointSamples {
  Forecast times;               // every row ascends
  std::vector<double> weights;  // by row, summing to 1
  std::vector<float>
      gradients;  // rows x workers: sum of the shares up to an arrival; empty: 1 each

  double gradients_of(uint32_t row, uint32_t arrivals) const {
    if (gradients.empty()) return arrivals;
    return static_cast<double>(gradients[size_t{row} * times.workers + arrivals - 1]);
  }
};

// Keeps its buffers, so that a decision allocates nothing.
class JointSearch {
 public:
  // The best plan. REQUIRES: at least one sample of at least one worker.
  JointPlan best(const JointSamples& samples, const JointTerms& terms);
  // Waiting for all workers.
  static JointPlan all(const JointSamples& samples, const JointTerms& terms);
  // The same plan with what it is expected to come to.
  static JointPlan judged(JointPlan plan, const JointSamples& samples, const JointTerms& terms);

 private:
  void pool(const Forecast& times);
  void try_limits(const Forecast& times, size_t begin, size_t end);
  void find_limit(const JointSamples& samples, const JointTerms& terms);
  void find_cutoff(const JointSamples& samples, const JointTerms& terms, bool limited);

  std::vector<float> pooled_;       // some of all samples, ascending
  std::vector<size_t> ranks_;       // of the candidates in pooled_
  std::vector<double> candidates_;  // limits, ascending
  std::vector<uint32_t> in_time_;   // rows x candidates: arrivals by then
  std::vector<double> gradients_;   // by candidate or by cutoff - 1
  std::vector<double> times_;
  std::vector<double> cut_gradients_;  // by arrivals at the limit: of rows that end there
  std::vector<double> cut_times_;
  // The pair that is being improved.
  uint32_t cutoff_ = 0;
  size_t limit_ = 0;
  double rate_ = 0.0;
};

}  // namespace drover

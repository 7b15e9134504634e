// Objectives: the best cutoff, given samples of the arrival times of the first, second, ...
// gradient.
//
// With c the cutoff, x_(c) the arrival of the c-th gradient, o the overhead of a step:
//   throughput  argmax_c E[ c / (o + x_(c)) ], the expectation of the ratio
//   goodput     argmax_c E[ p(c) / (o + x_(c)) ],  p(c) = c (nu + 1) / (nu + c)
//   rate        argmax_c E[ c - lambda (o + x_(c)) ], lambda the long-run throughput: a step waits
//               for the next gradient only while it expects it within 1/lambda
// p(c) is the progress of a step with c gradients, relative to a step with one. nu = phi / m is the
// noise scale (core/gradient_noise.h) in gradients of m samples. A step on M samples makes progress
// in proportion to M / (phi + M) (McCandlish et al. 2018); for M = c m, relative to M = m, that is
// p(c). So goodput is throughput times an efficiency (nu + 1) / (nu + c), as in Pollux: with much
// noise each gradient counts fully (p(c) = c), without noise one gradient is enough (p(c) = 1).
// Until nu is known, goodput equals throughput.
// If two cutoffs have the same value, the larger one wins, since it drops fewer gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/step_times.h"
#include "forecast/forecast.h"
#include "policy/policy.h"

namespace drover {

enum class Objective : uint8_t {
  kThroughput,  // gradients per time of this step
  kRate,        // gradients, minus the long-run throughput times the duration of the step
  kGoodput,     // progress per time of this step, given the gradients' noise
};
std::string_view name_of(Objective objective);
Result<Objective> parse_objective(std::string_view name);

// The parameters of an objective for one step.
struct Terms {
  double overhead = 0.0;         // per step
  std::optional<double> lambda;  // long-run throughput; present: `rate`, or inside a step
  std::optional<double> noise;   // present: `goodput`; in gradients, 0: not known yet

  // Progress of a step with this many gradients, per gradient; 1 unless the objective is goodput.
  double efficiency(double gradients) const {
    return noise && *noise > 0.0 ? (*noise + 1.0) / (*noise + gradients) : 1.0;
  }
  double value(uint32_t cutoff, double arrival) const {
    return value_of(static_cast<double>(cutoff), arrival);
  }
  // The same for gradients with unequal shares; `gradients` is the sum of the shares.
  double value_of(double gradients, double arrival) const {
    return worth_of(gradients, arrival) - (lambda ? *lambda * (overhead + arrival) : 0.0);
  }
  // value_of() without the cost of the time, lambda (o + x).
  double worth_of(double gradients, double arrival) const {
    const double time = lambda ? 1.0 : overhead + arrival;
    return gradients / time * efficiency(gradients);
  }
};

// The best cutoff and its expected value.
struct ExpectedThroughput {
  uint32_t cutoff = 0;
  double value = 0.0;    // expected value of the objective
  double arrival = 0.0;  // E[x_(cutoff)]
};

// Finds the best cutoff. It keeps its buffer, so that a decision allocates nothing.
class CutoffSearch {
 public:
  // REQUIRES: forecast.sorted; at least one sample of at least one worker.
  ExpectedThroughput best(const Forecast& forecast, const Terms& terms);
  // The same for known run-times. REQUIRES: `sorted` ascends and is not empty.
  static ExpectedThroughput best(std::span<const double> sorted, const Terms& terms);

 private:
  // Adds all samples to sums_[begin], sums_[begin + stride], ... up to end.
  void add_up(const Forecast& forecast, const Terms& terms, size_t begin, size_t end,
              size_t stride);

  std::vector<double> sums_;  // over the samples, by cutoff - 1
};

// The objective of a policy over the steps of a run. For `rate` it tracks the long-run throughput:
// gradients over time, both summed with exponentially decaying weights.
class Goal {
 public:
  explicit Goal(Objective objective) : objective_(objective) {}

  // The terms for a step with this overhead and noise. Until a throughput is known, `rate` uses
  // those of `throughput`.
  Terms terms(double overhead, double noise);
  // The terms for decisions inside a step: gradients, minus the long-run throughput times the
  // duration. Maximising the ratio of the single step would close steps that start fast too early;
  // they are short, so the total over all steps would be lower.
  Terms long_run() const;
  // REQUIRES: the step was decided by these terms. A warm-up step, which waits for all workers, is
  // not representative: it would make `rate` wait too long.
  void learn(const StepTimes& times);

 private:
  const Objective objective_;
  Terms terms_;             // of the step that the next learn() reports
  double gradients_ = 0.0;  // with `goodput`, their progress
  double time_ = 0.0;
};

// "expect 6,000 gradients/s at 5.11 s", with more detail for `rate` and `goodput`, for a decision's
// reason.
std::string describe(const ExpectedThroughput& expected, const Terms& terms, TimeUnit unit);

}  // namespace drover

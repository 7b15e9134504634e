// Objectives: which cutoff promises most, given samples of when the first, second, ... gradient is
// going to arrive.
//
// With c the cutoff, x_(c) the arrival of the c-th gradient, o the overhead of a step:
//   throughput  argmax_c E[ c / (o + x_(c)) ], the expectation of the ratio
//   goodput     argmax_c E[ p(c) / (o + x_(c)) ],  p(c) = c (nu + 1) / (nu + c)
//   rate        argmax_c E[ c - lambda (o + x_(c)) ], lambda the throughput in the long run: the
//               next gradient is waited for only while it is expected sooner than 1/lambda
// p(c) is the progress of a step with c gradients, in steps with one: nu = phi / m is the noise
// scale (core/gradient_noise.h) in gradients of m samples, and M samples bring a step forward by
// M / (phi + M), up to a factor (McCandlish et al. 2018), which for c m samples over m is p(c). So
// goodput is throughput times an efficiency (nu + 1) / (nu + c), as in Pollux: with much noise each
// gradient counts (p(c) = c), with none the first is all it takes (p(c) = 1). Until nu is known,
// goodput is throughput.
// Where two cutoffs promise the same, the larger wins: it is the gentler one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/step_times.h"
#include "forecast/forecast.h"

namespace drover {

enum class Objective : uint8_t {
  kThroughput,  // gradients per time of this step
  kRate,        // gradients, less what their time would bring in the long run
  kGoodput,     // progress per time of this step, given the gradients' noise
};
std::string_view name_of(Objective objective);
Result<Objective> parse_objective(std::string_view name);

// What a cutoff is judged by.
struct Terms {
  double overhead = 0.0;         // per step
  std::optional<double> lambda;  // in the long run; present: rate, or inside a step
  std::optional<double> noise;   // present: goodput; in gradients, 0: not known yet

  // Of the gradients of a step: 1 where each counts alike.
  double efficiency(double gradients) const {
    return noise && *noise > 0.0 ? (*noise + 1.0) / (*noise + gradients) : 1.0;
  }
  double value(uint32_t cutoff, double arrival) const {
    return value_of(static_cast<double>(cutoff), arrival);
  }
  // The same where some gradients count more than others.
  double value_of(double gradients, double arrival) const {
    return worth_of(gradients, arrival) - (lambda ? *lambda * (overhead + arrival) : 0.0);
  }
  // What so many gradients are worth at that time, whatever the time would bring elsewhere.
  double worth_of(double gradients, double arrival) const {
    const double time = lambda ? 1.0 : overhead + arrival;
    return gradients / time * efficiency(gradients);
  }
};

// The best cutoff and what it promises.
struct ExpectedThroughput {
  uint32_t cutoff = 0;
  double value = 0.0;    // expected, as the objective counts
  double arrival = 0.0;  // E[x_(cutoff)]
};

// Finds the best cutoff; keeps its buffer, so that a decision allocates nothing.
class CutoffSearch {
 public:
  // REQUIRES: forecast.sorted; at least one sample of at least one worker.
  ExpectedThroughput best(const Forecast& forecast, const Terms& terms);
  // When the run-times are known. REQUIRES: `sorted` ascends and is not empty.
  static ExpectedThroughput best(std::span<const double> sorted, const Terms& terms);

 private:
  // Adds all samples to sums_[begin], sums_[begin + stride], ... up to end.
  void add_up(const Forecast& forecast, const Terms& terms, size_t begin, size_t end,
              size_t stride);

  std::vector<double> sums_;  // over the samples, by cutoff - 1
};

// The objective of a policy over the steps of a run. For `rate` it keeps the long-run throughput:
// gradients over time, both summed with exponentially fading weights.
class Goal {
 public:
  explicit Goal(Objective objective) : objective_(objective) {}

  // The terms for a step with this overhead and noise. Before any throughput is known, `rate` has
  // those of `throughput`.
  Terms terms(double overhead, double noise);
  // The terms by which it is decided whether to wait on inside a step: gradients less what their
  // time would bring in the long run. Closing where the ratio of one step is best would favour
  // steps that begin luckily, and they are short: it is the sum over all steps that counts.
  Terms long_run() const;
  // To be told of the steps that were decided by these terms, and of no others: waiting for all in
  // a warm-up says nothing about what can be reached, and would keep the rule waiting for long.
  void learn(const StepTimes& times);

 private:
  const Objective objective_;
  Terms terms_;             // of the step that learn() is going to be about
  double gradients_ = 0.0;  // where their noise counts, as much as they advanced
  double time_ = 0.0;
};

// "12.3 gradients per time expected by 7.65", or how `rate` and `goodput` say it, for a decision's
// reason.
std::string describe(const ExpectedThroughput& promise, const Terms& terms);

}  // namespace drover

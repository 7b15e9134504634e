// For tests: runs a policy on recorded run-times exactly as a replay does, and makes synthetic
// traces.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/random_draw.h"
#include "policy/catalogue.h"
#include "policy/close_rule.h"
#include "policy/decider.h"

namespace drover::testing_support {

// Run-times by step and worker; NaN for an absent worker.
using Trace = std::vector<std::vector<double>>;
inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// A decision inside a step.
struct Reviewed {
  double at = 0.0;
  std::optional<Choice> choice;
};

struct Walked {
  Choice choice;  // the last one
  uint32_t alive = 0;
  StepClose close;
  double longest = 0.0;        // duration of the step if it had waited for all workers
  std::vector<double> shares;  // by worker; empty: 1 each
  std::vector<Reviewed> reviews{};
};

std::vector<WorkerId> alive_in(std::span<const double> run_times);

// What a run knows of a step that closed after `close.elapsed`.
StepTimes known_of(Step step, std::span<const double> run_times, const StepClose& close);

// For each step: decide, review, close, learn. With balanced work, run-times are proportional to
// shares.
std::vector<Walked> walk(Decider& decider, const Trace& trace, double overhead, double noise = 0.0);
// The same for a policy given by its text. An oracle gets foresight of the trace; with `goodput`
// the noise scale is kWalkNoise gradients. REQUIRES: the text is valid.
inline constexpr double kWalkNoise = 4.0;
std::vector<Walked> walk(std::string_view policy, const Trace& trace, double overhead = 0.1,
                         PolicySettings settings = {}, const DecisionLimits& limits = {},
                         std::optional<BalanceSettings> balance = std::nullopt);

// Gradients over time, overheads included, from step `from` on.
double throughput(std::span<const Walked> walked, double overhead, size_t from = 0);

enum class Shape : uint8_t {
  kNormal,     // about 1, all alike
  kHeavyTail,  // Pareto
  kSlowNode,   // a quarter twice as slow for the first half of the steps
  kDifferent,  // each worker has its own speed
  kConstant,   // all run-times are equal
};
inline constexpr Shape kShapes[] = {Shape::kNormal, Shape::kHeavyTail, Shape::kSlowNode,
                                    Shape::kDifferent, Shape::kConstant};

// `absent` is the share of absent workers. ENSURES: each step has at least one worker.
Trace make_trace(Shape shape, uint64_t seed, size_t steps, size_t workers, double absent = 0.0);

// A deterministic draw from 0 to 1.
inline double unit_draw(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), a, b, c}));
}

}  // namespace drover::testing_support

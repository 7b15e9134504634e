// For tests: walks a policy through recorded run-times exactly as a replay does, and makes records
// of several shapes to walk through.
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

// Run-times by step and worker; NaN for a worker that is not there.
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
  double longest = 0.0;        // what waiting for everybody would have taken
  std::vector<double> shares;  // by worker; empty: all a whole one
  std::vector<Reviewed> reviews{};
};

std::vector<WorkerId> alive_in(std::span<const double> run_times);

// What a run that closed after `close.elapsed` knows of a step.
StepTimes known_of(Step step, std::span<const double> run_times, const StepClose& close);

// Decide, look again, close, learn, step by step. Where work is balanced, a share of it takes a
// share of the time.
std::vector<Walked> walk(Decider& decider, const Trace& trace, double overhead, double noise = 0.0);
// `policy` as the user writes it; an oracle gets foresight of the trace, and with `goodput` the
// noise is kWalkNoise gradients. The text must be right.
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
  kDifferent,  // everybody at their own speed
  kConstant,   // everybody takes the same, always
};
inline constexpr Shape kShapes[] = {Shape::kNormal, Shape::kHeavyTail, Shape::kSlowNode,
                                    Shape::kDifferent, Shape::kConstant};

// `absent`: the share of entries that are blank; at least one worker is there in every step.
Trace make_trace(Shape shape, uint64_t seed, size_t steps, size_t workers, double absent = 0.0);

// A draw from 0 to 1 for a test.
inline double unit_draw(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), a, b, c}));
}

}  // namespace drover::testing_support

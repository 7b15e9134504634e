#include "sim/run_times.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"
#include "core/random_draw.h"

namespace drover {
namespace {

constexpr uint32_t kDefaultLaw = ~uint32_t{0};
// Lower bound on normally distributed run-times, as a share of the mean.
constexpr double kFastest = 0.01;

// The use of a random draw: part of its key, so that no two uses get the same draw.
enum Use : uint64_t { kBase = 1, kStraggles, kDelay, kEnters };

double median_of(const Trace& trace) {
  std::vector<double> known;
  std::copy_if(trace.times.begin(), trace.times.end(), std::back_inserter(known),
               [](double value) { return !std::isnan(value); });
  DROVER_CHECK(!known.empty());
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

}  // namespace

RunTimes::RunTimes(const Scenario& scenario, uint32_t workers, uint64_t seed)
    : scenario_(scenario), seed_(seed), law_of_(workers, kDefaultLaw) {
  for (uint32_t rule = 0; rule < scenario.run_times.size(); ++rule) {
    for (WorkerId worker = 0; worker < workers; ++worker) {
      if (scenario.concerns(scenario.run_times[rule].selector, worker)) law_of_[worker] = rule;
    }
    const auto& trace = scenario.run_times[rule].law.trace;
    trace_median_.push_back(trace ? median_of(*trace) : 0.0);
  }
  for (const Regime& regime : scenario.regimes) {
    const size_t chains = regime.by_node ? std::max<size_t>(1, scenario.nodes.size()) : workers;
    chains_.emplace_back(chains);
  }
}

uint64_t RunTimes::draw_bits(uint64_t use, uint64_t which, Step step, uint64_t index) const {
  return draw({seed_, static_cast<uint64_t>(Purpose::kRunTimes), use, which, step, index});
}

double RunTimes::uniform(uint64_t use, uint64_t which, Step step, uint64_t index) const {
  return unit_interval(draw_bits(use, which, step, index));
}

// Box and Muller: two uniform draws give one normal one.
double RunTimes::normal(uint64_t use, uint64_t which, Step step, uint64_t index) const {
  const uint64_t bits = draw_bits(use, which, step, index);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit_interval(bits)));
  return radius * std::cos(2.0 * std::numbers::pi * unit_interval(mix_bits(bits)));
}

double RunTimes::base(const RunTimeLaw& law, Step step, WorkerId worker) const {
  switch (law.kind) {
    case RunTimeKind::kConstant:
      return law.mean;
    case RunTimeKind::kNormal:
      return std::max(kFastest * law.mean,
                      law.mean + law.deviation * normal(kBase, 0, step, worker));
    case RunTimeKind::kLognormal: {
      // With s^2 = ln(1 + (deviation / mean)^2), exp(ln(mean) - s^2 / 2 + s z) has that mean and
      // deviation.
      const double spread = law.deviation / law.mean;
      const double variance = std::log1p(spread * spread);
      return law.mean *
             std::exp(std::sqrt(variance) * normal(kBase, 0, step, worker) - variance / 2.0);
    }
    case RunTimeKind::kShiftedExponential:
      return law.shift - law.mean * std::log(1.0 - uniform(kBase, 0, step, worker));
    case RunTimeKind::kPareto:
      return law.shift * std::pow(1.0 - uniform(kBase, 0, step, worker), -1.0 / law.shape);
    case RunTimeKind::kTrace:
      return law.trace->row(step % law.trace->steps())[worker % law.trace->workers.size()];
  }
  return law.mean;
}

bool RunTimes::is_slow(size_t regime, Step step, WorkerId worker) {
  const Regime& rule = scenario_.regimes[regime];
  const uint32_t index = rule.by_node ? scenario_.node_of(worker) : worker;
  std::vector<bool>& states = chains_[regime][index].slow;
  while (states.size() <= step) {
    const bool before = !states.empty() && states.back();
    const double drawn = uniform(kEnters, regime, states.size(), index);
    states.push_back(before ? drawn >= rule.leave : drawn < rule.enter);
  }
  return states[step];
}

double RunTimes::seconds(Step step, WorkerId worker) {
  const uint32_t law = law_of_[worker];
  double time = law == kDefaultLaw ? 1.0 : base(scenario_.run_times[law].law, step, worker);
  if (std::isnan(time)) time = trace_median_[law];
  for (const SlowSpell& spell : scenario_.slow) {
    if (spell.steps.contains(step) && scenario_.concerns(spell.selector, worker))
      time *= spell.factor;
  }
  for (size_t regime = 0; regime < scenario_.regimes.size(); ++regime) {
    const Regime& rule = scenario_.regimes[regime];
    if (scenario_.concerns(rule.selector, worker) && is_slow(regime, step, worker))
      time *= rule.factor;
  }
  for (const Drift& drift : scenario_.drifts) {
    if (scenario_.concerns(drift.selector, worker))
      time *= std::pow(1.0 + drift.per_step, static_cast<double>(step));
  }
  for (size_t which = 0; which < scenario_.straggling.size(); ++which) {
    const Straggling& rule = scenario_.straggling[which];
    if (!rule.steps.contains(step) || !scenario_.concerns(rule.selector, worker)) continue;
    if (uniform(kStraggles, which, step, worker) >= rule.share) continue;
    time *= rule.factor;
    time +=
        std::max(0.0, rule.delay_mean + rule.delay_deviation * normal(kDelay, which, step, worker));
  }
  return time;
}

}  // namespace drover

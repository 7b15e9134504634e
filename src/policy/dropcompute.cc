#include "policy/dropcompute.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "core/text.h"
#include "policy/close_rule.h"

namespace drover {
namespace {

constexpr uint32_t kCandidates = 200;

std::vector<std::vector<double>> run_times_of(const RecentSteps& log) {
  std::vector<std::vector<double>> steps;
  for (const StepTimes& times : log.steps()) {
    std::vector<double> run_times;
    for (size_t worker = 0; worker < times.known.size(); ++worker) {
      if (times.known[worker] != Known::kNothing) run_times.push_back(times.seconds[worker]);
    }
    if (!run_times.empty()) steps.push_back(std::move(run_times));
  }
  return steps;
}

}  // namespace

LimitEffect best_limit(std::vector<std::vector<double>> steps, double overhead,
                       uint32_t candidates) {
  DROVER_CHECK(!steps.empty());
  DROVER_CHECK(candidates >= 2);
  double shortest = std::numeric_limits<double>::infinity();
  double longest = 0.0;
  double gradients = 0.0;
  double time = 0.0;
  for (std::vector<double>& step : steps) {
    std::sort(step.begin(), step.end());
    shortest = std::min(shortest, step.front());
    longest = std::max(longest, step.back());
    gradients += static_cast<double>(step.size());
    time += overhead + step.back();
  }
  LimitEffect best{longest, 0.0, 0.0};
  double best_gain = -1.0;
  for (uint32_t candidate = 0; candidate < candidates; ++candidate) {
    const double part = static_cast<double>(candidate) / static_cast<double>(candidates - 1);
    // The last candidate is exactly the longest run-time, without rounding: it drops no gradient.
    const double limit =
        candidate + 1 == candidates ? longest : shortest + part * (longest - shortest);
    double kept = 0.0;
    double limited = 0.0;
    for (const std::vector<double>& step : steps) {
      const Choice choice{.cutoff = static_cast<uint32_t>(step.size()), .time_limit = limit};
      const StepClose close = close_of(choice, step);
      kept += static_cast<double>(close.contributors);
      limited += overhead + close.elapsed;
    }
    const LimitEffect effect{limit, 1.0 - kept / gradients, 1.0 - limited / time};
    if (effect.gain() < best_gain) continue;
    best = effect;
    best_gain = effect.gain();
  }
  return best;
}

DropComputePolicy::DropComputePolicy(Step warmup)
    : warm_up_(warmup), log_(static_cast<size_t>(std::max<Step>(warmup, 1))) {}

Choice DropComputePolicy::decide(const Situation& situation) {
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  if (!fitted_) {
    const auto steps = run_times_of(log_);
    if (!warm_up_.over() || steps.empty()) return warm_up_.choice(situation);
    fitted_ = best_limit(steps, situation.overhead, kCandidates);
    log_.forget();
  }
  return {.cutoff = alive,
          .time_limit = fitted_->limit,
          .reason = fmt::format("dropcompute: wait for {}{}; in the warm-up, this limit drops {} "
                                "of the gradients and saves {} of the time",
                                worker_count_text(alive, alive),
                                time_limit_text(fitted_->limit, situation.unit),
                                short_percent(fitted_->dropped), short_percent(fitted_->saved))};
}

void DropComputePolicy::learn(const StepTimes& times) {
  if (fitted_) return;
  warm_up_.learn();
  log_.learn(times);
}

void DropComputePolicy::learn_late(Step step, WorkerId worker, double seconds) {
  log_.learn_late(step, worker, seconds);
}

}  // namespace drover

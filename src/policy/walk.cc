#include "policy/walk.h"

#include <algorithm>
#include <numbers>

#include "core/check.h"

namespace drover::testing_support {

std::vector<WorkerId> alive_in(std::span<const double> run_times) {
  std::vector<WorkerId> alive;
  for (WorkerId worker = 0; worker < run_times.size(); ++worker) {
    if (!std::isnan(run_times[worker])) alive.push_back(worker);
  }
  return alive;
}

StepTimes known_of(Step step, std::span<const double> run_times, const StepClose& close) {
  StepTimes known{.step = step, .elapsed = close.elapsed, .contributors = close.contributors};
  for (const double time : run_times) {
    if (std::isnan(time)) {
      known.seconds.push_back(0.0);
      known.known.push_back(Known::kNothing);
    } else if (time <= close.elapsed) {
      known.seconds.push_back(time);
      known.known.push_back(Known::kArrived);
    } else {
      known.seconds.push_back(close.elapsed);
      known.known.push_back(Known::kLonger);
    }
  }
  return known;
}

std::vector<Walked> walk(Decider& decider, const Trace& trace, double overhead, double noise) {
  std::vector<Walked> walked;
  for (Step step = 0; step < trace.size(); ++step) {
    std::vector<double> run_times = trace[step];
    const std::vector<WorkerId> alive = alive_in(run_times);
    Walked here;
    if (step == 0) decider.plan_shares(step, alive);
    if (decider.balances()) {
      for (WorkerId worker = 0; worker < run_times.size(); ++worker) {
        here.shares.push_back(decider.share(step, worker));
        run_times[worker] *= here.shares.back();
      }
    }
    std::vector<double> sorted;
    for (const WorkerId worker : alive) sorted.push_back(run_times[worker]);
    std::sort(sorted.begin(), sorted.end());
    here.choice = decider.decide({step, alive, overhead, noise});
    decider.plan_shares(step + 1, alive);
    here.alive = static_cast<uint32_t>(alive.size());
    here.close = close_of(here.choice, sorted);
    here.longest = sorted.back();
    double at = review_of(here.choice, sorted);
    while (at < here.close.elapsed) {
      std::vector<double> arrived;
      for (const WorkerId worker : alive)
        arrived.push_back(run_times[worker] <= at ? run_times[worker] : kNoTimeLimit);
      here.reviews.push_back({at, decider.reconsider({step, at, arrived})});
      if (!here.reviews.back().choice) break;
      here.choice = *here.reviews.back().choice;
      here.close = close_of(here.choice, sorted, at);
      const double next = review_of(here.choice, sorted);
      DROVER_CHECK(next > at);  // a review is of the future
      at = next;
    }
    decider.learn(known_of(step, run_times, here.close));
    walked.push_back(std::move(here));
  }
  return walked;
}

std::vector<Walked> walk(std::string_view policy, const Trace& trace, double overhead,
                         PolicySettings settings, const DecisionLimits& limits,
                         std::optional<BalanceSettings> balance) {
  settings.foresight = [&](Step step, std::span<const WorkerId> alive) {
    std::vector<double> times;
    for (const WorkerId worker : alive) times.push_back(trace[step][worker]);
    return times;
  };
  auto made = make_policy(policy, settings);
  if (!made && settings.live) {
    settings.live = false;  // it has no forecast to look at again
    made = make_policy(policy, settings);
  }
  DROVER_CHECK(made.ok());
  Decider decider(std::move(made).value(), limits, balance);
  return walk(decider, trace, overhead,
              settings.objective == Objective::kGoodput ? kWalkNoise : 0.0);
}

double throughput(std::span<const Walked> walked, double overhead, size_t from) {
  double gradients = 0.0;
  double time = 0.0;
  for (const Walked& step : walked.subspan(from)) {
    gradients += static_cast<double>(step.close.contributors);
    time += overhead + step.close.elapsed;
  }
  return gradients / time;
}

Trace make_trace(Shape shape, uint64_t seed, size_t steps, size_t workers, double absent) {
  Trace trace(steps, std::vector<double>(workers));
  for (size_t step = 0; step < steps; ++step) {
    for (size_t worker = 0; worker < workers; ++worker) {
      const double u = 1.0 - unit_draw(seed, step, worker, 0);  // never 0
      const double v = unit_draw(seed, step, worker, 1);
      const double normal = std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
      const double steady = std::max(0.1, 1.0 + 0.05 * normal);
      double& time = trace[step][worker];
      switch (shape) {
        case Shape::kNormal:
          time = steady;
          break;
        case Shape::kHeavyTail:
          time = 0.5 * std::pow(u, -1.0 / 1.5);
          break;
        case Shape::kSlowNode:
          time = steady * (4 * worker < workers && 2 * step < steps ? 2.0 : 1.0);
          break;
        case Shape::kDifferent:
          time = steady * (1.0 + 2.0 * unit_draw(seed, worker));
          break;
        case Shape::kConstant:
          time = 1.0;
          break;
      }
      if (unit_draw(seed, step, worker, 2) < absent) time = kAbsent;
    }
    if (alive_in(trace[step]).empty()) trace[step][step % workers] = 1.0;
  }
  return trace;
}

}  // namespace drover::testing_support

#include "sim/oracle_bounds.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/check.h"

namespace drover {
namespace {

// The recorded run-times of each step, ascending.
using Steps = std::vector<std::vector<double>>;

Steps sorted_steps(const Trace& trace, Step first) {
  Steps steps;
  for (Step step = first; step < trace.steps(); ++step) {
    std::vector<double>& times = steps.emplace_back();
    for (const double time : trace.row(step)) {
      if (!std::isnan(time)) times.push_back(time);
    }
    std::sort(times.begin(), times.end());
  }
  return steps;
}

// The total when every step has the cutoff that is best at the price `lambda` of time.
double total_at(const Steps& steps, double overhead, double lambda) {
  double gradients = 0.0;
  double time = 0.0;
  for (const std::vector<double>& times : steps) {
    size_t best = 0;
    double best_value = -HUGE_VAL;
    for (size_t i = 0; i < times.size(); ++i) {
      const double value = static_cast<double>(i + 1) - lambda * times[i];
      if (value < best_value) continue;
      best_value = value;
      best = i;
    }
    gradients += static_cast<double>(best + 1);
    time += overhead + times[best];
  }
  return gradients / time;
}

double best_total(const Steps& steps, double overhead) {
  constexpr int kPasses = 50;  // it converges faster than any power; ten are plenty
  double lambda = 0.0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double total = total_at(steps, overhead, lambda);
    if (total <= lambda) break;
    lambda = total;
  }
  return lambda;
}

void find_best_cutoff(const Steps& steps, double overhead, OracleBounds& bounds) {
  size_t most = 0;
  for (const std::vector<double>& times : steps) most = std::max(most, times.size());
  for (size_t cutoff = 1; cutoff <= most; ++cutoff) {
    double gradients = 0.0;
    double time = 0.0;
    for (const std::vector<double>& times : steps) {
      const size_t count = std::min(cutoff, times.size());
      gradients += static_cast<double>(count);
      time += overhead + times[count - 1];
    }
    if (gradients / time < bounds.by_cutoff) continue;
    bounds.cutoff = static_cast<uint32_t>(cutoff);
    bounds.by_cutoff = gradients / time;
  }
}

// Between two recorded run-times a later limit only costs time, so that the best one is a recorded
// run-time. All of them are visited in order; a step takes its first run-time at least, its last at
// most, and the limit in between.
void find_best_limit(const Steps& steps, double overhead, OracleBounds& bounds) {
  std::vector<std::pair<double, size_t>> arrivals;
  double fixed_time = 0.0;
  for (size_t step = 0; step < steps.size(); ++step) {
    fixed_time += overhead + steps[step].front();
    for (const double time : steps[step]) arrivals.emplace_back(time, step);
  }
  std::sort(arrivals.begin(), arrivals.end());
  std::vector<size_t> arrived(steps.size(), 0);
  auto gradients = static_cast<double>(steps.size());
  size_t open = 0;  // steps that end at the limit
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const auto [time, step] = arrivals[i];
    const bool first = arrived[step]++ == 0;
    const bool last = arrived[step] == steps[step].size();
    if (!first) gradients += 1.0;
    if (first && !last) {
      fixed_time -= time;
      ++open;
    } else if (!first && last) {
      fixed_time += time;
      --open;
    }
    if (i + 1 < arrivals.size() && arrivals[i + 1].first == time) continue;
    const double rate = gradients / (fixed_time + static_cast<double>(open) * time);
    if (rate < bounds.by_time_limit) continue;
    bounds.time_limit = time;
    bounds.by_time_limit = rate;
  }
}

}  // namespace

OracleBounds oracle_bounds(const Trace& trace, double overhead, Step first) {
  DROVER_CHECK(first < trace.steps());
  const Steps steps = sorted_steps(trace, first);
  OracleBounds bounds;
  bounds.bound = best_total(steps, overhead);
  find_best_cutoff(steps, overhead, bounds);
  find_best_limit(steps, overhead, bounds);
  return bounds;
}

}  // namespace drover

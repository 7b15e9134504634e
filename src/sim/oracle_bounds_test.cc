#include "sim/oracle_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

Trace trace_of(size_t workers, std::vector<double> times) {
  Trace trace;
  for (size_t i = 0; i < workers; ++i) trace.workers.push_back("w" + std::to_string(i));
  trace.times = std::move(times);
  return trace;
}

Trace random_trace(uint64_t seed, size_t steps, size_t workers, double absent) {
  std::vector<double> times;
  for (size_t step = 0; step < steps; ++step) {
    for (size_t worker = 0; worker < workers; ++worker) {
      const auto unit = [&](uint64_t use) {
        return unit_interval(
            draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), step, worker, use}));
      };
      const bool there = worker == 0 || unit(1) >= absent;
      // Few values, so that several are equal.
      times.push_back(there ? 1.0 + std::floor(8.0 * unit(2) * unit(3)) : NAN);
    }
  }
  return trace_of(workers, std::move(times));
}

std::vector<double> sorted_row(const Trace& trace, Step step) {
  std::vector<double> times;
  for (const double time : trace.row(step))
    if (!std::isnan(time)) times.push_back(time);
  std::sort(times.begin(), times.end());
  return times;
}

// All ways to choose a cutoff for each step.
double best_of_all(const Trace& trace, double overhead, Step step, double gradients, double time) {
  if (step == trace.steps()) return gradients / time;
  double best = 0.0;
  const std::vector<double> times = sorted_row(trace, step);
  for (size_t i = 0; i < times.size(); ++i) {
    best = std::max(best,
                    best_of_all(trace, overhead, step + 1, gradients + static_cast<double>(i + 1),
                                time + overhead + times[i]));
  }
  return best;
}

TEST(OracleBounds, AreTheBestOfAllWaysToChooseCutoffs) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = random_trace(seed, 6, 4, 0.2);
    for (const double overhead : {0.0, 0.7}) {
      EXPECT_NEAR(oracle_bounds(trace, overhead, 0).bound,
                  best_of_all(trace, overhead, 0, 0.0, 0.0), 1e-12);
    }
  }
}

TEST(OracleBounds, FindsTheBestConstantCutoffAndLimit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = random_trace(seed, 30, 5, 0.2);
    const double overhead = 0.3;
    double by_cutoff = 0.0;
    for (size_t cutoff = 1; cutoff <= 5; ++cutoff) {
      double gradients = 0.0;
      double time = 0.0;
      for (Step step = 0; step < trace.steps(); ++step) {
        const std::vector<double> times = sorted_row(trace, step);
        const size_t count = std::min(cutoff, times.size());
        gradients += static_cast<double>(count);
        time += overhead + times[count - 1];
      }
      by_cutoff = std::max(by_cutoff, gradients / time);
    }
    double by_limit = 0.0;
    for (double limit = 1.0; limit <= 8.0; limit += 0.25) {
      double gradients = 0.0;
      double time = 0.0;
      for (Step step = 0; step < trace.steps(); ++step) {
        const std::vector<double> times = sorted_row(trace, step);
        const auto here = std::upper_bound(times.begin(), times.end(), limit) - times.begin();
        gradients += static_cast<double>(std::max<ptrdiff_t>(1, here));
        time += overhead + std::min(times.back(), std::max(times.front(), limit));
      }
      by_limit = std::max(by_limit, gradients / time);
    }
    const OracleBounds bounds = oracle_bounds(trace, overhead, 0);
    EXPECT_NEAR(bounds.by_cutoff, by_cutoff, 1e-12);
    EXPECT_NEAR(bounds.by_time_limit, by_limit, 1e-12);
    EXPECT_GE(bounds.bound, std::max(by_cutoff, by_limit) - 1e-12);
  }
}

// Abandoning a rare step that is slow as a whole pays over many steps, though not within it.
TEST(OracleBounds, CountTheTimeOfAStepAtWhatItWouldBringElsewhere) {
  const Trace trace = trace_of(2, {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 9.0});
  EXPECT_DOUBLE_EQ(oracle_bounds(trace, 0.0, 0).bound, 7.0 / 8.0);
  EXPECT_DOUBLE_EQ(oracle_bounds(trace, 0.0, 3).bound, 2.0 / 9.0) << "that step alone";
}

}  // namespace
}  // namespace drover

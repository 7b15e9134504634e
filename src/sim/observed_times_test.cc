#include "sim/observed_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

const double kAbsent = std::nan("");

TEST(ObservedTimes, AreRunTimesOfArrivedWorkersAndBoundsForTheOthers) {
  const std::vector<double> times = {3.0, 1.0, kAbsent, 2.0, 9.0};
  const StepTimes seen = observed_times(7, times, {.contributors = 2, .elapsed = 2.0});
  EXPECT_EQ(seen.step, 7u);
  EXPECT_EQ(seen.elapsed, 2.0);
  EXPECT_EQ(seen.contributors, 2u);
  EXPECT_EQ(seen.known, (std::vector<Known>{Known::kLonger, Known::kArrived, Known::kNothing,
                                            Known::kArrived, Known::kLonger}));
  EXPECT_EQ(seen.seconds, (std::vector<double>{2.0, 1.0, 0.0, 2.0, 2.0}));
}

TEST(ObservedTimes, DoNotDependOnRunTimesBeyondTheClose) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<double> times(20);
    for (size_t worker = 0; worker < times.size(); ++worker) {
      times[worker] = 0.1 + unit_interval(draw({seed, worker}));
    }
    const StepClose close{.contributors = 5, .elapsed = 0.1 + unit_interval(draw({seed, 99}))};
    std::vector<double> others = times;
    for (size_t worker = 0; worker < times.size(); ++worker) {
      if (times[worker] <= close.elapsed) continue;
      others[worker] = close.elapsed * (1.0 + 1e-9 + 1e6 * unit_interval(draw({seed, worker, 1})));
    }
    const StepTimes a = observed_times(0, times, close);
    const StepTimes b = observed_times(0, others, close);
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.known, b.known);
  }
}

TEST(Probes, AreReportedWhenTheyFinish) {
  Probes probes(1.0, 1);
  // Opened at 10, closed after 2: three workers are late, and one took no part.
  probes.step_closed(4, 10.0, std::vector<double>{3.0, 1.0, kAbsent, 2.5, 9.0}, {1, 2.0});
  EXPECT_TRUE(probes.finished_by(12.0).empty());
  const auto first = probes.finished_by(13.0);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].worker, 3u);
  EXPECT_EQ(first[1].worker, 0u);
  EXPECT_EQ(first[1].step, 4u);
  EXPECT_EQ(first[1].run_time, 3.0);
  probes.step_closed(5, 12.0, std::vector<double>{1.0, 1.0, 1.0, 1.0, 1.5}, {4, 1.0});
  EXPECT_EQ(probes.finished_by(13.5).at(0).step, 5u) << "it overtakes a probe of the previous step";
  EXPECT_EQ(probes.finished_by(1e9).at(0).run_time, 9.0);
  EXPECT_TRUE(probes.finished_by(1e9).empty()) << "each probe is reported once";
}

// A probe that a policy requests runs until the next step closes, and is busy until then.
TEST(Probes, RequestedByAPolicyEndWithTheNextStep) {
  Probes probes(0.0, 1);
  const std::vector<WorkerId> requested = {1, 2};
  const std::vector<double> times = {1.0, 2.5, 9.0, 4.0};
  probes.step_closed(0, 0.0, times, {1, 1.0}, requested);
  EXPECT_FALSE(probes.is_busy(0, 1.0));
  EXPECT_TRUE(probes.is_busy(1, 1.0));
  EXPECT_TRUE(probes.is_busy(2, 1.0));
  EXPECT_FALSE(probes.is_busy(3, 1.0)) << "it was dropped and stopped";
  probes.step_closed(1, 1.0, times, {4, 2.0}, {});
  probes.stop_requested(1, 3.0);
  const auto finished = probes.finished_by(3.0);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].worker, 1u);
  EXPECT_EQ(finished[0].run_time, 2.5);
  EXPECT_FALSE(probes.is_busy(2, 3.0)) << "it was stopped";
  EXPECT_TRUE(probes.finished_by(1e9).empty());
}

TEST(Probes, AreTheGivenShareOfTheStragglers) {
  Probes none(0.0, 1);
  Probes some(0.3, 1);
  const std::vector<double> times(10'000, 2.0);
  none.step_closed(0, 0.0, times, {1, 1.0});
  some.step_closed(0, 0.0, times, {1, 1.0});
  EXPECT_TRUE(none.finished_by(10.0).empty());
  EXPECT_NEAR(static_cast<double>(some.finished_by(10.0).size()), 3000.0, 200.0);
}

// The choice of probes does not depend on run-times, and a probe is only reported after it has
// finished.
TEST(Probes, DoNotDependOnRunTimesBeyondNow) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Probes probes(0.5, seed);
    Probes of_another_future(0.5, seed);
    double now = 0.0;
    for (Step step = 0; step < 30; ++step) {
      std::vector<double> times(8);
      std::vector<double> others(8);
      const StepClose close{.contributors = 3, .elapsed = 1.0};
      for (size_t i = 0; i < times.size(); ++i) {
        times[i] = 5.0 * unit_interval(draw({seed, step, i}));
        others[i] = times[i];
        // Changes the run-time of a probe that finishes after the end to another one after the end.
        if (now + times[i] <= 10.0) continue;
        others[i] = std::max(close.elapsed * 1.01, 10.01 - now) +
                    5.0 * unit_interval(draw({seed, step, i, 1}));
        times[i] = std::max(times[i], close.elapsed * 1.01);
      }
      probes.step_closed(step, now, times, close);
      of_another_future.step_closed(step, now, others, close);
      now += close.elapsed;
      if (now > 10.0) break;
      const auto a = probes.finished_by(now);
      const auto b = of_another_future.finished_by(now);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].step, b[i].step);
        EXPECT_EQ(a[i].worker, b[i].worker);
        EXPECT_EQ(a[i].run_time, b[i].run_time);
      }
    }
  }
}

}  // namespace
}  // namespace drover

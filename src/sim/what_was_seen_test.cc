#include "sim/what_was_seen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/chance.h"

namespace drover {
namespace {

const double kAbsent = std::nan("");

TEST(WhatWasSeen, IsTheTimesOfThoseWhoWereThereAndABoundForTheOthers) {
  const std::vector<double> times = {3.0, 1.0, kAbsent, 2.0, 9.0};
  const StepTimes seen = what_was_seen(7, times, {.contributors = 2, .elapsed = 2.0});
  EXPECT_EQ(seen.step, 7u);
  EXPECT_EQ(seen.elapsed, 2.0);
  EXPECT_EQ(seen.contributors, 2u);
  EXPECT_EQ(seen.known, (std::vector<Known>{Known::kLonger, Known::kArrived, Known::kNothing,
                                            Known::kArrived, Known::kLonger}));
  EXPECT_EQ(seen.seconds, (std::vector<double>{2.0, 1.0, 0.0, 2.0, 2.0}));
}

TEST(WhatWasSeen, DoesNotDependOnWhatLiesBeyondTheClose) {
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
    const StepTimes a = what_was_seen(0, times, close);
    const StepTimes b = what_was_seen(0, others, close);
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.known, b.known);
  }
}

}  // namespace
}  // namespace drover

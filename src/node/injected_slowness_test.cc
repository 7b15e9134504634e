#include "node/injected_slowness.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using std::chrono::milliseconds;

TEST(InjectedSlowness, DelaysAndStretchesTheStepsOfTheRules) {
  InjectedSlowness slowness({{.workers = {{2, 3}}, .steps = {{5, 6}}, .factor = 3.0},
                             {.steps = {{6, 7}}, .delay = milliseconds(40)}},
                            1, 2);
  EXPECT_EQ(slowness.begin(4), Duration::zero());
  EXPECT_FALSE(slowness.stretches());
  EXPECT_EQ(slowness.begin(5), Duration::zero());
  EXPECT_TRUE(slowness.stretches());
  EXPECT_EQ(slowness.begin(6), milliseconds(40));
  EXPECT_TRUE(slowness.stretches());
  EXPECT_EQ(slowness.begin(7), milliseconds(40));
  EXPECT_FALSE(slowness.stretches());
}

TEST(InjectedSlowness, StretchesOnlyTheTimeSinceResume) {
  InjectedSlowness slowness({{.factor = 3.0}}, 1, 0);
  slowness.begin(0);
  const TimePoint began{milliseconds(1000)};
  slowness.resume(began);
  EXPECT_EQ(slowness.stretch(began + milliseconds(10)), milliseconds(20));
  slowness.resume(began + milliseconds(30));
  EXPECT_EQ(slowness.stretch(began + milliseconds(31)), milliseconds(2));
}

TEST(InjectedSlowness, DoesNotAffectOtherWorkers) {
  InjectedSlowness slowness({{.workers = {{2, 3}}, .factor = 3.0, .delay = milliseconds(1)}}, 1, 4);
  EXPECT_EQ(slowness.begin(0), Duration::zero());
  EXPECT_FALSE(slowness.stretches());
}

}  // namespace
}  // namespace drover

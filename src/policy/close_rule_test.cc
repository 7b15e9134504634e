#include "policy/close_rule.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

const std::vector<double> kTimes = {1.0, 2.0, 3.0, 10.0};

TEST(CloseRule, EndsWithTheGradientThatReachesTheCutoff) {
  const StepClose close = close_of({.cutoff = 3}, kTimes);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 3.0);
}

TEST(CloseRule, TheTimeLimitIsWaitedForInFullWhenSomebodyIsMissing) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 5.0}, kTimes);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 5.0);
}

TEST(CloseRule, TheTimeLimitCostsNothingWhenEverybodyIsThereBefore) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 50.0}, kTimes);
  EXPECT_EQ(close.contributors, 4u);
  EXPECT_EQ(close.elapsed, 10.0);
}

TEST(CloseRule, WhoArrivesAtTheLimitIsInTime) {
  EXPECT_EQ(close_of({.cutoff = 4, .time_limit = 3.0}, kTimes).contributors, 3u);
}

TEST(CloseRule, TheLeastNumberIsWaitedForBeyondTheLimit) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 0.5, .at_least = 2}, kTimes);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.0);
}

TEST(CloseRule, NoStepEndsWithNobody) {
  EXPECT_EQ(close_of({.cutoff = 4, .time_limit = 0.5, .at_least = 0}, kTimes).contributors, 1u);
}

}  // namespace
}  // namespace drover

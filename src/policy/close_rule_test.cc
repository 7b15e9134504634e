#include "policy/close_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace drover {
namespace {

const std::vector<double> kTimes = {1.0, 2.0, 3.0, 10.0};

TEST(CloseRule, EndsWithTheGradientThatReachesTheCutoff) {
  const StepClose close = close_of({.cutoff = 3}, kTimes);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 3.0);
}

TEST(CloseRule, WaitsUntilTheLimitIfAWorkerIsMissing) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 5.0}, kTimes);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 5.0);
}

TEST(CloseRule, ClosesBeforeTheLimitIfAllHaveArrived) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 50.0}, kTimes);
  EXPECT_EQ(close.contributors, 4u);
  EXPECT_EQ(close.elapsed, 10.0);
}

TEST(CloseRule, AnArrivalAtTheLimitIsInTime) {
  EXPECT_EQ(close_of({.cutoff = 4, .time_limit = 3.0}, kTimes).contributors, 3u);
}

TEST(CloseRule, WaitsForTheMinimumBeyondTheLimit) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 0.5, .at_least = 2}, kTimes);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.0);
}

TEST(CloseRule, NoStepClosesWithoutGradients) {
  EXPECT_EQ(close_of({.cutoff = 4, .time_limit = 0.5, .at_least = 0}, kTimes).contributors, 1u);
}

// --- A new choice at 2.5 inside the step, after two arrivals.

TEST(CloseRule, AReachedCutoffClosesNow) {
  const StepClose close = close_of({.cutoff = 2, .at_least = 2}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.5) << "not at the time of the last arrival";
}

TEST(CloseRule, AllArrivalsCountBeyondTheCutoff) {
  const StepClose close = close_of({.cutoff = 1}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.5);
}

TEST(CloseRule, ALargerCutoffWaits) {
  for (const Choice& choice :
       {Choice{.cutoff = 3}, Choice{.cutoff = 4}, Choice{.cutoff = 4, .time_limit = 5.0},
        Choice{.cutoff = 4, .time_limit = 3.0}, Choice{.cutoff = 3, .time_limit = 2.6}}) {
    const StepClose before = close_of(choice, kTimes);
    const StepClose again = close_of(choice, kTimes, 2.5);
    EXPECT_EQ(again.contributors, before.contributors);
    EXPECT_EQ(again.elapsed, before.elapsed);
  }
}

TEST(CloseRule, ALimitThatHasPassedClosesNow) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 1.5}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.5);
}

TEST(CloseRule, WaitsForTheMinimumAfterTheLimit) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 1.5, .at_least = 3}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 3.0);
  const StepClose none = close_of({.cutoff = 4, .time_limit = 0.1}, kTimes, 0.5);
  EXPECT_EQ(none.contributors, 1u) << "no step closes without gradients";
  EXPECT_EQ(none.elapsed, 1.0);
}

TEST(CloseRule, AnArrivalAtTheTimeOfTheChoiceCounts) {
  EXPECT_EQ(close_of({.cutoff = 1}, kTimes, 3.0).contributors, 3u);
}

TEST(CloseRule, NothingClosesBeforeTheChoice) {
  for (double now = 0.25; now < 12.0; now += 0.25) {
    for (uint32_t cutoff = 1; cutoff <= 4; ++cutoff) {
      for (const double limit : {0.3, 2.5, 5.0, kNoTimeLimit}) {
        for (uint32_t at_least = 1; at_least <= cutoff; ++at_least) {
          const Choice choice{.cutoff = cutoff, .time_limit = limit, .at_least = at_least};
          const StepClose close = close_of(choice, kTimes, now);
          EXPECT_GE(close.elapsed, now);
          uint32_t here = 0;
          uint32_t by_then = 0;
          for (const double time : kTimes) {
            here += time <= now ? 1 : 0;
            by_then += time <= close.elapsed ? 1 : 0;
          }
          EXPECT_GE(close.contributors, std::max(here, at_least));
          EXPECT_EQ(close.contributors, by_then);
        }
      }
    }
  }
}

TEST(CloseRule, IsReviewedByArrivalsOrTime) {
  const auto review = [](const Review& asked) {
    return review_of({.cutoff = 4, .review = asked}, kTimes);
  };
  EXPECT_EQ(review({.arrivals = 2}), 2.0);
  EXPECT_EQ(review({.at = 1.5}), 1.5);
  EXPECT_EQ(review({.arrivals = 2, .at = 1.5}), 1.5) << "whichever is first";
  EXPECT_EQ(review({.arrivals = 2, .at = 7.0}), 2.0);
  EXPECT_EQ(review({.arrivals = 9, .at = 7.0}), 7.0) << "more arrivals than workers";
  EXPECT_EQ(review({}), kNoTimeLimit) << "never by default";
}

}  // namespace
}  // namespace drover

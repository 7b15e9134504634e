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

// --- Chosen again in the midst of the step: 1 and 2 are here at 2.5.

TEST(CloseRule, AChoiceOfAsManyAsAreHereClosesNow) {
  const StepClose close = close_of({.cutoff = 2, .at_least = 2}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.5) << "and not when the last of them came";
}

TEST(CloseRule, WhoeverIsHereCountsThoughFewerWereWanted) {
  const StepClose close = close_of({.cutoff = 1}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 2u);
  EXPECT_EQ(close.elapsed, 2.5);
}

TEST(CloseRule, AChoiceOfMoreWaitsAsFromTheBeginning) {
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

TEST(CloseRule, TheLeastNumberIsWaitedForThoughTheLimitHasPassed) {
  const StepClose close = close_of({.cutoff = 4, .time_limit = 1.5, .at_least = 3}, kTimes, 2.5);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 3.0);
  const StepClose nobody = close_of({.cutoff = 4, .time_limit = 0.1}, kTimes, 0.5);
  EXPECT_EQ(nobody.contributors, 1u) << "no step ends with nobody";
  EXPECT_EQ(nobody.elapsed, 1.0);
}

TEST(CloseRule, WhoArrivesAtTheMomentOfTheChoiceIsHere) {
  EXPECT_EQ(close_of({.cutoff = 1}, kTimes, 3.0).contributors, 3u);
}

TEST(CloseRule, NothingEndsBeforeItWasChosen) {
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

TEST(CloseRule, IsReviewedWhenSoManyAreHereOrAtATime) {
  const auto review = [](const Review& asked) {
    return review_of({.cutoff = 4, .review = asked}, kTimes);
  };
  EXPECT_EQ(review({.arrivals = 2}), 2.0);
  EXPECT_EQ(review({.at = 1.5}), 1.5);
  EXPECT_EQ(review({.arrivals = 2, .at = 1.5}), 1.5) << "whichever is first";
  EXPECT_EQ(review({.arrivals = 2, .at = 7.0}), 2.0);
  EXPECT_EQ(review({.arrivals = 9, .at = 7.0}), 7.0) << "so many never arrive";
  EXPECT_EQ(review({}), kNoTimeLimit) << "never, if it does not say";
}

}  // namespace
}  // namespace drover

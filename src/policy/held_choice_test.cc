// Holding a choice must save deciding, and must not outlive what it was made for.
#include "policy/held_choice.h"

#include <gtest/gtest.h>

#include "core/test_text.h"

namespace drover {
namespace {

const std::vector<WorkerId> kFour = {0, 1, 2, 3};

// Walks steps in which deciding would give `cutoffs`; returns at which it was decided.
std::vector<Step> decided_at(HeldChoice& held, const std::vector<uint32_t>& cutoffs,
                             double elapsed = 1.0) {
  std::vector<Step> decided;
  for (Step step = 0; step < cutoffs.size(); ++step) {
    const Situation situation{.step = step, .alive = kFour};
    if (!held.choice(situation)) {
      held.hold(situation, {.cutoff = cutoffs[step], .reason = "made"});
      decided.push_back(step);
    }
    StepTimes times;
    times.step = step;
    times.elapsed = elapsed;
    held.learn(times);
  }
  return decided;
}

TEST(HeldChoice, HoldsForAFixedNumberOfSteps) {
  HeldChoice held(4);
  EXPECT_EQ(decided_at(held, std::vector<uint32_t>(10, 3)), (std::vector<Step>{0, 4, 8}));
}

TEST(HeldChoice, EveryStepIsDecidedIfNothingIsToBeHeld) {
  HeldChoice held(1);
  EXPECT_EQ(decided_at(held, std::vector<uint32_t>(5, 3)).size(), 5u);
}

TEST(HeldChoice, HoldsLongerAndLongerWhileDecidingComesToTheSame) {
  HeldChoice held(0);
  EXPECT_EQ(decided_at(held, std::vector<uint32_t>(32, 100)),
            (std::vector<Step>{0, 1, 3, 7, 11, 15, 19, 23, 27, 31}));
}

TEST(HeldChoice, BeginsAgainWhenDecidingComesToSomethingElse) {
  HeldChoice held(0);
  std::vector<uint32_t> cutoffs(16, 100);
  for (size_t i = 7; i < cutoffs.size(); ++i) cutoffs[i] = 50;
  // Found out at step 7, and held for one step only from there on.
  EXPECT_EQ(decided_at(held, cutoffs), (std::vector<Step>{0, 1, 3, 7, 8, 10, 14}));
}

TEST(HeldChoice, SaysWhatItHolds) {
  HeldChoice held(3);
  held.hold({.step = 5, .alive = kFour}, {.cutoff = 2,
                                          .time_limit = 7.0,
                                          .reason = "ecdf: 2 of 4",
                                          .review = {.arrivals = 1, .at = 2.0}});
  const auto choice = held.choice({.step = 6, .alive = kFour});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, 2u);
  EXPECT_EQ(choice->time_limit, 7.0);
  EXPECT_THAT(choice->reason, mentions(5, "ecdf: 2 of 4"));
  EXPECT_EQ(choice->review.at, kNoTimeLimit) << "is not looked at again inside the step";
}

TEST(HeldChoice, EndsWhenOthersAreAlive) {
  HeldChoice held(10);
  held.hold({.step = 0, .alive = kFour}, {.cutoff = 2, .reason = "made"});
  const std::vector<WorkerId> others = {0, 1, 2};
  EXPECT_FALSE(held.choice({.step = 1, .alive = others}));
}

TEST(HeldChoice, EndsWhenAStepTookOddlyLong) {
  for (const double odd : {2.0, 0.4}) {
    HeldChoice held(10);
    held.hold({.step = 0, .alive = kFour}, {.cutoff = 2, .reason = "made"});
    StepTimes times;
    times.elapsed = 1.0;
    held.learn(times);
    EXPECT_TRUE(held.choice({.step = 1, .alive = kFour}));
    times.elapsed = odd;
    held.learn(times);
    EXPECT_FALSE(held.choice({.step = 2, .alive = kFour})) << odd;
  }
}

}  // namespace
}  // namespace drover

// When a block closes a step according to the decisions.
#include "shard/cutoff_rule.h"

#include <gtest/gtest.h>

#include <limits>

#include "wire/header.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Step kNoLimit = std::numeric_limits<Step>::max();

// A block of four workers that collects for step 0, which opened at 0.
class CutoffRuleTest : public ::testing::Test {
 protected:
  void push(WorkerId worker, TimePoint at) {
    pushes_.on_push(worker, Answer::kAccepted, at, members_);
  }
  CutoffRule::Collecting block(Step step = 0, bool open = true) const {
    return {.step = step,
            .pushes = pushes_,
            .members = members_,
            .opened = open ? std::optional(TimePoint{}) : std::nullopt};
  }

  Membership members_{4};
  StepPushes pushes_{members_};
};

TEST_F(CutoffRuleTest, WithoutADecisionAboutItsStepABlockWaitsForAllMembers) {
  CutoffRule rule(0ms, false, kNoLimit);
  for (const WorkerId worker : {0u, 1u, 2u}) push(worker, 1ms);
  EXPECT_FALSE(rule.may_close(block(), 9ms));
  EXPECT_TRUE(rule.on_decision({.step = 0, .cutoff = 4}, 0));
  EXPECT_FALSE(rule.may_close(block(1), 9ms));
  EXPECT_FALSE(rule.enough_since(block(1)));
  push(3, 2ms);
  EXPECT_TRUE(rule.may_close(block(1), 9ms));
}

TEST_F(CutoffRuleTest, ClosesWithTheCutoff) {
  CutoffRule rule(0ms, false, kNoLimit);
  rule.on_decision({.step = 0, .cutoff = 2}, 0);
  push(0, 1ms);
  EXPECT_FALSE(rule.may_close(block(), 1ms));
  push(1, 3ms);
  EXPECT_TRUE(rule.may_close(block(), 3ms));
  EXPECT_EQ(rule.enough_since(block()), TimePoint(3ms));
}

TEST_F(CutoffRuleTest, AGraceFollowsTheCutoff) {
  CutoffRule rule(5ms, false, kNoLimit);
  rule.on_decision({.step = 0, .cutoff = 1}, 0);
  push(0, 1ms);
  EXPECT_EQ(rule.wake_at(block()), TimePoint(6ms));
  EXPECT_FALSE(rule.may_close(block(), 6ms)) << "a push at this moment is in time";
  EXPECT_TRUE(rule.may_close(block(), 6ms + 1ns));
}

TEST_F(CutoffRuleTest, ATimeLimitClosesWithTheMinimum) {
  CutoffRule rule(5ms, false, kNoLimit);
  rule.on_decision({.step = 0, .cutoff = 4, .time_limit = 10ms, .at_least = 2}, 0);
  push(0, 1ms);
  EXPECT_FALSE(rule.wake_at(block())) << "it waits for a push without a limit";
  push(1, 2ms);
  EXPECT_EQ(rule.wake_at(block()), TimePoint(10ms));
  EXPECT_FALSE(rule.may_close(block(), 10ms));
  EXPECT_TRUE(rule.may_close(block(), 10ms + 1ns));
  EXPECT_FALSE(rule.wake_at(block(0, false))) << "limits are about the shard's open step";
}

TEST_F(CutoffRuleTest, HasATimerIfBlocksMayCloseWithoutAPush) {
  CutoffRule rule(0ms, false, kNoLimit);
  EXPECT_FALSE(rule.has_timer(0));
  rule.on_decision({.step = 0, .cutoff = 4}, 0);
  EXPECT_FALSE(rule.has_timer(0));
  rule.on_decision({.step = 0, .cutoff = 4, .time_limit = 10ms}, 0);
  EXPECT_TRUE(rule.has_timer(0));
  EXPECT_FALSE(rule.has_timer(1));
  EXPECT_TRUE(CutoffRule(1ms, false, kNoLimit).has_timer(1));
}

TEST_F(CutoffRuleTest, ATimeLimitEndsTheGrace) {
  CutoffRule rule(50ms, false, kNoLimit);
  rule.on_decision({.step = 0, .cutoff = 1, .time_limit = 10ms}, 0);
  push(0, 1ms);
  EXPECT_EQ(rule.enough_since(block()), TimePoint(10ms));
}

TEST_F(CutoffRuleTest, ContributionsOfLostWorkersDoNotCountTowardsTheCutoff) {
  CutoffRule rule(0ms, false, kNoLimit);
  rule.on_decision({.step = 0, .cutoff = 2}, 0);
  push(0, 1ms);
  push(1, 2ms);
  members_.remove(0);
  pushes_.on_members_changed(members_);
  EXPECT_FALSE(rule.may_close(block(), 3ms));
  push(2, 4ms);
  EXPECT_EQ(rule.enough_since(block()), TimePoint(4ms));
}

TEST_F(CutoffRuleTest, ABlockIsAtMostItsBoundAheadOfTheDecisions) {
  CutoffRule rule(0ms, true, 3);
  rule.on_decision({.step = 5, .cutoff = 1}, 0);
  for (const WorkerId worker : {0u, 1u, 2u, 3u}) push(worker, 1ms);
  EXPECT_TRUE(rule.may_close(block(8), 1ms));
  EXPECT_FALSE(rule.may_close(block(9), 1ms));
  EXPECT_TRUE(rule.may_close(block(2), 1ms));
}

TEST_F(CutoffRuleTest, RemembersDecisionsAboutOpenSteps) {
  CutoffRule rule(0ms, true, 16);
  EXPECT_TRUE(rule.on_decision({.step = 0, .cutoff = 1}, 0));
  EXPECT_FALSE(rule.on_decision({.step = 0, .cutoff = 2}, 0)) << "the same step again";
  EXPECT_TRUE(rule.on_decision({.step = 3, .cutoff = 1}, 0));
  push(0, 1ms);
  EXPECT_FALSE(rule.may_close(block(0), 1ms));
  EXPECT_TRUE(rule.may_close(block(3), 1ms));
  EXPECT_EQ(rule.pending(), 2u);
  rule.forget_before(3);
  EXPECT_EQ(rule.pending(), 1u);
  EXPECT_FALSE(rule.may_close(block(0), 1ms)) << "it waits for all members again";
}

}  // namespace
}  // namespace drover

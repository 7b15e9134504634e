// Time limits: a shard closes a step exactly when the limit is over and enough gradients have
// arrived.
#include "shard/shard_time_fixture.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST_F(ShardTimeTest, ReportsArrivalsWhileTheStepIsOpen) {
  start(4);
  Decision decision{.step = 0, .cutoff = 4, .alive = {0, 1, 2, 3}, .report_every = 2};
  shard_.on_decision(decision, now_, out_);
  now_ = 10ms;
  push_block(1, 0, 0);
  EXPECT_TRUE(take<Arrived>().empty()) << "half a gradient has not arrived";
  push_block(1, 0, 1);
  EXPECT_TRUE(take<Arrived>().empty()) << "reported two at a time";
  now_ = 12ms;
  push(3, 0);
  const std::vector<Arrived> reports = take<Arrived>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0], (Arrived{.step = 0, .arrivals = {{1, 10ms, 0}, {3, 12ms, 0}}}));
  // A new decision: the gradients that have arrived are enough.
  decision.cutoff = 2;
  shard_.on_decision(decision, now_, out_);
  EXPECT_EQ(take<StepClosed>().size(), 1u);
}

TEST_F(ShardTimeTest, ReportsArrivalsBeforeTheDecision) {
  start(3);
  shard_.on_decision({.step = 0, .cutoff = 3, .alive = {0, 1, 2}, .report_every = 1}, now_, out_);
  for (const WorkerId worker : {0u, 1u, 2u}) push(worker, 0);
  take<Arrived>();
  now_ = 5ms;
  push(2, 1);  // before the decision
  EXPECT_TRUE(take<Arrived>().empty());
  shard_.on_decision({.step = 1, .cutoff = 3, .alive = {0, 1, 2}, .report_every = 1}, now_, out_);
  ASSERT_EQ(take<Arrived>().size(), 1u);
}

TEST_F(ShardTimeTest, ClosesAtTheTimeLimitWithoutAMessage) {
  start(3);
  decide(0, {.cutoff = 3, .time_limit = 50.0});
  EXPECT_FALSE(shard_.wake_at()) << "without gradients the time limit closes nothing";
  now_ = 10ns;
  push(0, 0);
  EXPECT_EQ(shard_.wake_at(), 50ns);
  now_ = 49ns;
  shard_.on_time(now_, out_);
  EXPECT_TRUE(take<StepClosed>().empty());
  now_ = 50ns;
  shard_.on_time(now_, out_);
  const auto closed = take<StepClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].elapsed, 50ns);
  EXPECT_EQ(closed[0].arrivals.size(), 1u);
  EXPECT_FALSE(shard_.wake_at()) << "there is no decision about step 1 yet";
}

TEST_F(ShardTimeTest, ReportsHowLongABlockWaitedForTheDecision) {
  start(3);
  decide(0, {.cutoff = 2});
  push(0, 0);
  push(1, 0);
  EXPECT_EQ(take<StepClosed>().at(0).undecided, 0ns) << "the decision was earlier";
  now_ = 100ns;
  push(0, 1);
  now_ = 130ns;
  push_block(1, 1, 0);
  now_ = 150ns;
  push_block(1, 1, 1);
  EXPECT_TRUE(take<StepClosed>().empty()) << "without a decision the block waits for all workers";
  now_ = 190ns;
  decide(1, {.cutoff = 2});
  const auto closed = take<StepClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].undecided, 60ns) << "of the block that waited longest";
  EXPECT_EQ(closed[0].closing, 60ns);
}

TEST_F(ShardTimeTest, ADecisionAboutAClosedStepIsForgotten) {
  start(1);
  decide(0, {.cutoff = 1});
  push(0, 0);
  for (Step step = 1; step < 40; ++step) push(0, step);
  const size_t before = shard_.pending();
  for (Step step = 1; step < 40; ++step) decide(step, {.cutoff = 1});
  EXPECT_EQ(shard_.pending(), before);
}

TEST_F(ShardTimeTest, OnlyTheFirstDecisionAboutAStepEndsTheWait) {
  start(3);
  decide(0, {.cutoff = 3});
  push(0, 0);
  push(1, 0);
  now_ = 100ns;
  decide(0, {.cutoff = 2});  // a new decision with a smaller cutoff
  EXPECT_EQ(take<StepClosed>().at(0).undecided, 0ns);
  push(0, 1);
  now_ = 140ns;
  decide(1, {.cutoff = 2});
  now_ = 200ns;
  push(1, 1);
  EXPECT_EQ(take<StepClosed>().at(0).undecided, 0ns)
      << "it had not enough when the decision arrived";
}

TEST_F(ShardTimeTest, CountsTheWaitSinceATimeLimitThatIsOverWhenDecided) {
  start(3);
  decide(0, {.cutoff = 1});
  push(0, 0);
  take<StepClosed>();
  now_ = 10ns;
  push(0, 1);
  now_ = 90ns;
  decide(1, {.cutoff = 3, .time_limit = 50.0});
  const auto closed = take<StepClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].undecided, 40ns) << "since the limit: one gradient had arrived";
}

TEST_F(ShardTimeTest, LostWorkersDoNotCountForHavingEnough) {
  start(3);
  decide(0, {.cutoff = 1});
  push(0, 0);
  take<StepClosed>();
  now_ = 10ns;
  push(0, 1);
  shard_.on_lost(0, now_, out_);
  now_ = 30ns;
  push(1, 1);
  now_ = 70ns;
  Decision decision{.step = 1, .cutoff = 1, .alive = {1, 2}};
  shard_.on_decision(decision, now_, out_);
  EXPECT_EQ(take<StepClosed>().at(0).undecided, 40ns);
}

TEST_F(ShardTimeTest, WaitsBeyondTheLimitForTheMinimum) {
  start(3);
  decide(0, {.cutoff = 3, .time_limit = 50.0, .at_least = 2});
  push(0, 0);
  EXPECT_FALSE(shard_.wake_at());
  now_ = 80ns;
  push(1, 0);
  const auto closed = take<StepClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].elapsed, 80ns);
}

TEST_F(ShardTimeTest, ADecisionAfterItsLimitClosesAtOnce) {
  start(3);
  decide(0, {.cutoff = 3});
  for (const WorkerId worker : {0u, 1u, 2u}) push(worker, 0);
  ASSERT_EQ(take<StepClosed>().size(), 1u);
  now_ = 30ns;
  push(0, 1);
  now_ = 90ns;
  decide(1, {.cutoff = 3, .time_limit = 50.0});
  const auto closed = take<StepClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].step, 1u);
  EXPECT_EQ(closed[0].elapsed, 90ns);
}

TEST_F(ShardTimeTest, HalfAGradientIsNotEnough) {
  start(2);
  decide(0, {.cutoff = 2, .time_limit = 50.0});
  push_block(0, 0, 0);
  now_ = 60ns;
  shard_.on_time(now_, out_);
  EXPECT_TRUE(take<StepClosed>().empty()) << "the other block has no gradient";
  EXPECT_FALSE(shard_.wake_at()) << "the block with a gradient has closed";
  push_block(0, 0, 1);
  EXPECT_EQ(take<StepClosed>().size(), 1u);
}

TEST_F(ShardTimeTest, GradientsOfLostWorkersDoNotCountForTheMinimum) {
  start(3);
  decide(0, {.cutoff = 3, .time_limit = 50.0});
  push(0, 0);
  shard_.on_lost(0, now_, out_);
  EXPECT_FALSE(shard_.wake_at());
  now_ = 60ns;
  push(1, 0);
  ASSERT_EQ(take<StepClosed>().size(), 1u);
}

TEST_F(ShardTimeTest, ANewDecisionForTheSameStepMovesTheTimer) {
  start(2);
  decide(0, {.cutoff = 2, .time_limit = 50.0});
  push(0, 0);
  decide(0, {.cutoff = 2, .time_limit = 70.0});
  EXPECT_EQ(shard_.wake_at(), 70ns);
  decide(0, {.cutoff = 2});
  EXPECT_FALSE(shard_.wake_at());
}

}  // namespace
}  // namespace drover

// The coordinator's calls of its policy, and the decisions, shares and orders that it sends.
#include "coordinator/coordinator_fixture.h"

namespace drover {
namespace {

class LongCoordinatorTest : public CoordinatorTest {
 protected:
  LongCoordinatorTest() : CoordinatorTest({.workers = 2, .shards = 2, .steps = 30, .batch = 4}) {}
};

TEST_F(LongCoordinatorTest, SendsTheNoiseScaleToShardsAndThePolicyOnceKnown) {
  gather();
  for (Step step = 0; step < 12; ++step) {
    EXPECT_DOUBLE_EQ(sent<Decision>().back().second.noise_scale, step < 10 ? 0.0 : 6.0) << step;
    EXPECT_DOUBLE_EQ(policy_.noise, step < 10 ? 0.0 : 1.5) << "in gradients of 4 samples";
    StepClosed closed{.step = step, .elapsed = 10ms, .samples = 8, .signal = 1.0, .noise = 6.0};
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
  }
}

// Shard 0 opened step 1 30 ms before shard 1. It measures the time limit from its own opening.
TEST_F(CoordinatorTest, ATimeLimitEndsAtTheSameTimeOnAllShards) {
  policy_.choice = {.cutoff = 2, .time_limit = 1.5, .reason = "because"};
  gather();
  StepClosed closed{.step = 0, .elapsed = 50ms};
  closed.samples = 8;
  now_ = 50ms;
  receive(Role::kShard, 0, closed);
  now_ = 80ms;
  out_ = {};
  receive(Role::kShard, 1, closed);
  ASSERT_EQ(sent<Decision>().size(), 2u);
  EXPECT_EQ(sent<Decision>()[0].second.time_limit, 1530ms);
  EXPECT_EQ(sent<Decision>()[1].second.time_limit, 1500ms);
}

TEST_F(CoordinatorTest, SendsTheChoiceOfThePolicy) {
  policy_.choice = {.cutoff = 2, .time_limit = 1.5, .at_least = 2, .reason = "because"};
  gather();
  EXPECT_EQ(
      sent<Decision>()[0].second,
      (Decision{.step = 0, .cutoff = 2, .time_limit = 1500ms, .at_least = 2, .alive = {0, 1}}));
  EXPECT_EQ(recorded<DecisionRecord>()[0].reason, "because");
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  EXPECT_EQ(sent<Decision>().back().second,
            (Decision{.step = 0, .cutoff = 1, .time_limit = 1500ms, .at_least = 1, .alive = {0}}));
  EXPECT_EQ(policy_.decided, std::vector<Step>{0}) << "the same choice, for fewer workers";
  policy_.choice.time_limit = 0.0;
  close(0, {0});
  EXPECT_EQ(sent<Decision>().back().second.time_limit, 1ns) << "zero would mean no limit";
}

TEST_F(CoordinatorTest, ThePolicyLearnsOnlyKnownRunTimes) {
  gather();
  close(0, {0});
  ASSERT_EQ(policy_.learned.size(), 1u);
  EXPECT_EQ(policy_.learned[0].step, 0u);
  EXPECT_EQ(policy_.learned[0].known, (std::vector<Known>{Known::kArrived, Known::kLonger}));
  EXPECT_EQ(policy_.learned[0].seconds, (std::vector<double>{0.01, 0.01}));
  EXPECT_EQ(policy_.learned[0].elapsed, 0.01);
  EXPECT_EQ(policy_.learned[0].contributors, 1u);

  StepClosed closed;
  closed.step = 1;
  closed.arrivals = {{0, 5ms, 1}, {1, 7ms, 1}};
  closed.late = {{1, 80ms, 0}};
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
  ASSERT_EQ(policy_.late.size(), 1u);
  EXPECT_EQ(policy_.late[0], (std::tuple<Step, WorkerId, double>(0, 1, 0.08)));
  EXPECT_EQ(policy_.learned[1].known, (std::vector<Known>{Known::kArrived, Known::kArrived}));
}

TEST_F(CoordinatorTest, ReviewsWhenEnoughHaveArrivedOnAllShards) {
  policy_.choice.review = {.arrivals = 1, .at = kNoTimeLimit};
  policy_.revised = Choice{.cutoff = 1, .at_least = 1, .reason = "closes"};
  gather();
  for (const auto& [to, decision] : sent<Decision>()) EXPECT_EQ(decision.report_every, 1u);
  out_ = {};
  now_ = 7ms;
  receive(Role::kShard, 0, Arrived{.step = 0, .arrivals = {{1, 5ms, 0}}});
  EXPECT_TRUE(policy_.reconsidered.empty()) << "it has not arrived on the other shard";
  receive(Role::kShard, 1, Arrived{.step = 0, .arrivals = {{1, 6ms, 0}}});
  ASSERT_EQ(policy_.reconsidered.size(), 1u);
  EXPECT_DOUBLE_EQ(policy_.reconsidered[0].first, 0.007);
  EXPECT_DOUBLE_EQ(policy_.reconsidered[0].second[1], 0.006);
  EXPECT_GT(policy_.reconsidered[0].second[0], 1e9) << "worker 0 has not arrived";
  ASSERT_EQ(sent<Decision>().size(), 2u) << "one for each shard";
  EXPECT_EQ(sent<Decision>()[0].second.cutoff, 1u);
  EXPECT_EQ(sent<Decision>()[0].second.step, 0u);
  ASSERT_EQ(recorded<DecisionRecord>().size(), 1u);
  EXPECT_EQ(recorded<DecisionRecord>()[0].at, 7ms);
  EXPECT_EQ(recorded<DecisionRecord>()[0].reason, "closes");
}

TEST_F(CoordinatorTest, ReviewsAtTheTimeThatThePolicyAskedFor) {
  policy_.choice.review.at = 0.02;
  gather();
  ASSERT_EQ(coordinator_.wake_at(), now_ + 20ms);
  out_ = {};
  coordinator_.on_time(now_ + 19ms, out_);
  EXPECT_TRUE(policy_.reconsidered.empty());
  coordinator_.on_time(now_ + 20ms, out_);
  ASSERT_EQ(policy_.reconsidered.size(), 1u);
  EXPECT_TRUE(sent<Decision>().empty()) << "the choice has not changed";
  EXPECT_FALSE(coordinator_.wake_at()) << "there is no further review";
}

TEST_F(CoordinatorTest, ArrivalsInAnotherStepCauseNoReview) {
  policy_.choice.review = {.arrivals = 1, .at = kNoTimeLimit};
  gather();
  close(0, {0, 1});
  for (const ShardId shard : {0u, 1u})
    receive(Role::kShard, shard, Arrived{.step = 0, .arrivals = {{1, 6ms, 0}}});
  EXPECT_TRUE(policy_.reconsidered.empty());
}

TEST_F(CoordinatorTest, ShardsReportNoArrivalsWithoutAReview) {
  gather();
  for (const auto& [to, decision] : sent<Decision>()) EXPECT_EQ(decision.report_every, 0u);
  EXPECT_FALSE(coordinator_.wake_at());
}

class BalancingCoordinator : public CoordinatorTest {
 protected:
  BalancingCoordinator()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 60,
                         .full_samples = 200,
                         .batch = 100,
                         .balance = BalanceSettings{.warmup = 4}}) {}
  void close_with(Step step, double first, double second) {
    StepClosed closed{.step = step, .elapsed = from_seconds(std::max(first, second)), .samples = 8};
    closed.arrivals = {{0, from_seconds(first), step}, {1, from_seconds(second), step}};
    for (const ShardId shard : {0u, 1u}) receive(Role::kShard, shard, closed);
  }
};

TEST_F(BalancingCoordinator, DealsOutTheNextStepsSamplesBySpeed) {
  gather();
  std::map<WorkerId, Share> now_in_force;
  const auto count = [&](WorkerId worker) {
    return now_in_force.contains(worker) ? now_in_force[worker].count : 100;
  };
  for (Step step = 0; step < 50; ++step) {
    for (const auto& [to, share] : sent<Share>()) {
      EXPECT_EQ(share.from, step + 1) << "before the step is begun";
      now_in_force[to.index] = share;
    }
    const std::map<WorkerId, Share> next = now_in_force;
    out_ = {};
    // Worker 1 takes three times as long for a sample. Counts are those of the step before, which
    // is precise enough.
    close_with(step, 0.001 * count(0), 0.003 * count(1));
    if (next.size() < 2) continue;
    EXPECT_EQ(next.at(0).count + next.at(1).count, 200u) << "the total has not changed";
    EXPECT_EQ(next.at(1).first, next.at(0).count) << "consecutive ranges";
    EXPECT_EQ(next.at(0).total, 200u);
  }
  EXPECT_NEAR(count(0), 150, 8);
  EXPECT_NEAR(count(1), 50, 8);
}

TEST_F(CoordinatorTest, OrdersStragglersToStop) {
  gather();
  out_ = {};
  close(0, {0});
  std::vector<Address> stopped;
  for (const Outgoing& each : out_.messages) {
    if (each.frame.header.type == FrameType::kStop) {
      stopped.push_back(each.to);
      EXPECT_EQ(each.frame.header.step, 0u);
    }
  }
  EXPECT_EQ(stopped, std::vector<Address>{to_worker(1, Lane::kControl)});
}

TEST_F(CoordinatorTest, MeasuresTheCostOfAnOrderToStop) {
  gather();
  now_ = 50ms;
  close(0, {0});
  now_ = 57ms;
  receive(Role::kWorker, 1, Abandoned{.step = 0, .resumed = 1, .wasted = 30ms});
  receive(Role::kWorker, 1, Abandoned{.step = 99, .resumed = 100, .wasted = 30ms});
  receive(Role::kWorker, 0, Abandoned{.step = 0, .resumed = 1, .wasted = 30ms});
  ASSERT_EQ(recorded<AbandonRecord>().size(), 1u) << "invalid reports are ignored";
  const AbandonRecord record = recorded<AbandonRecord>()[0];
  EXPECT_EQ(record.worker, 1u);
  EXPECT_EQ(record.restart, 7ms);
  EXPECT_EQ(record.wasted, 30ms);
  EXPECT_EQ(record.resumed, 1u);
}

class FinishingStragglers : public CoordinatorTest {
 protected:
  FinishingStragglers()
      : CoordinatorTest(
            {.workers = 2, .shards = 2, .steps = 200, .stragglers = StragglerRule::kFinish}) {}

  size_t stops() const {
    return static_cast<size_t>(std::count_if(
        out_.messages.begin(), out_.messages.end(),
        [](const Outgoing& each) { return each.frame.header.type == FrameType::kStop; }));
  }
  void close_with_late(Step step, const std::vector<WorkerId>& arrived, Step late) {
    StepClosed closed;
    closed.step = step;
    closed.elapsed = 10ms;
    closed.late = {{1, 80ms, late}};
    for (const WorkerId each : arrived) closed.arrivals.push_back({each, 10ms, step});
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
  }
};

TEST_F(FinishingStragglers, AreNeitherStoppedNorExpectedUntilTheyArrive) {
  gather();
  close(0, {0});
  close(1, {0});
  EXPECT_EQ(stops(), 0u);
  ASSERT_EQ(policy_.alive.size(), 3u);
  EXPECT_EQ(policy_.alive[1], std::vector<WorkerId>{0}) << "worker 1 is busy";
  EXPECT_EQ(recorded<DecisionRecord>()[1].alive, 2u) << "it may still arrive";
  EXPECT_EQ(sent<Decision>().back().second.alive, (std::vector<WorkerId>{0, 1}));
  EXPECT_EQ(sent<Decision>().back().second.cutoff, 1u);
  // In step 0 it took longer; in step 1 it took no part.
  EXPECT_EQ(policy_.learned[0].known[1], Known::kLonger);
  EXPECT_EQ(policy_.learned[1].known[1], Known::kNothing);

  close_with_late(2, {0}, 0);
  ASSERT_EQ(policy_.late.size(), 1u);
  EXPECT_EQ(policy_.learned[2].known[1], Known::kNothing) << "it was busy for part of the step";
  EXPECT_EQ(policy_.alive[3], std::vector<WorkerId>{0}) << "worker 1 is busy with step 2";
  close_with_late(3, {0, 1}, 2);
  EXPECT_EQ(policy_.late.size(), 1u) << "its time in step 2 includes the rest of step 0";
  EXPECT_EQ(policy_.learned[3].known[1], Known::kArrived) << "it arrived in time";
  EXPECT_EQ(policy_.alive[4], (std::vector<WorkerId>{0, 1}));

  // The record has the run-time even so.
  for (const Step step : {Step{0}, Step{2}})
    receive(Role::kWorker, 1, StepReport{.step = step, .samples = 3});
  const auto late = recorded<ArrivalRecord>();
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[1].step, 2u);
}

TEST_F(FinishingStragglers, AreExpectedIfNoOtherWorkerIsLeft) {
  gather();
  close(0, {0});
  coordinator_.on_lost(Role::kWorker, 0, disconnected("x"), now_, out_);
  EXPECT_EQ(sent<Decision>().back().second.cutoff, 1u) << "at least one";
  close(1, {});
  EXPECT_EQ(policy_.alive.back(), std::vector<WorkerId>{1});
}

TEST_F(FinishingStragglers, AreForgottenIfTheyNeverArrive) {
  gather();
  for (Step step = 0; step <= StepLedger::kStepsRemembered; ++step) close(step, {0});
  EXPECT_EQ(policy_.alive.back(), std::vector<WorkerId>{0});
  const size_t before = coordinator_.pending();
  for (Step step = StepLedger::kStepsRemembered + 1; step < 199; ++step) close(step, {0});
  EXPECT_LE(coordinator_.pending(), before + 3);
}

}  // namespace
}  // namespace drover

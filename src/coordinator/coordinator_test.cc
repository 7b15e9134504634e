// The coordinator gathers the processes, opens steps, records them, and ends the run with a reason.
#include "coordinator/coordinator_fixture.h"

namespace drover {
namespace {

TEST_F(CoordinatorTest, PlansWhenAllShardsAndAModelAreKnown) {
  ASSERT_TRUE(hello(worker(0)).ok());
  ASSERT_TRUE(hello(shard(0)).ok());
  EXPECT_TRUE(sent<Plan>().empty());
  ASSERT_TRUE(hello(shard(1)).ok());
  ASSERT_EQ(sent<Plan>().size(), 2u);
  EXPECT_EQ(sent<Plan>()[0].second.blocks.blocks.size(), 2u);
  ASSERT_EQ(sent<Welcome>().size(), 1u);
  EXPECT_EQ(sent<Welcome>()[0].second.shards, (std::vector<std::string>{"unix:s0", "unix:s1"}));
  ASSERT_TRUE(hello(worker(1)).ok());
  EXPECT_EQ(sent<Welcome>().size(), 2u) << "later workers get one, too";
}

class CoordinatorRateRuleTest : public CoordinatorTest {
 protected:
  CoordinatorRateRuleTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 30,
                         .learning = {.schedule = {.base = 0.5, .rule = RateRule::kAdaScale}},
                         .full_samples = 16}) {}
};

TEST_F(CoordinatorRateRuleTest, TheRecordHasTheLearningRateThatWasUsed) {
  gather();
  EXPECT_EQ(sent<Plan>()[0].second.full_samples, 16u);
  EXPECT_EQ(sent<Plan>()[0].second.learning.schedule.rule, RateRule::kAdaScale);
  for (Step step = 0; step < 12; ++step) {
    StepClosed closed{.step = step, .elapsed = 10ms, .samples = 8, .signal = 1.0, .noise = 4.0};
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
  }
  const auto summaries = recorded<StepSummary>();
  ASSERT_EQ(summaries.size(), 12u);
  EXPECT_EQ(summaries[9].step.learning_rate, 0.5) << "decided before the noise was known";
  // 8/16 * (4 + 16) / (4 + 8), of 0.5.
  EXPECT_DOUBLE_EQ(summaries[10].step.learning_rate, 0.5 * 0.5 * 20.0 / 12.0);
}

TEST_F(CoordinatorTest, OpensStepZeroWhenAllProcessesAreReady) {
  gather();
  ASSERT_EQ(sent<Decision>().size(), 2u) << "one to each shard";
  EXPECT_EQ(sent<Decision>()[0].second, (Decision{.step = 0, .cutoff = 2, .alive = {0, 1}}));
  ASSERT_EQ(recorded<DecisionRecord>().size(), 1u);
  EXPECT_EQ(recorded<DecisionRecord>()[0].cutoff, 2u) << "at most the number of workers";
  EXPECT_EQ(recorded<DecisionRecord>()[0].alive, 2u);
  EXPECT_TRUE(recorded<DecisionRecord>()[0].reason.starts_with("fixed"));
  EXPECT_EQ(recorded<PeerRecord>().size(), 5u);
}

TEST_F(CoordinatorTest, RunsToItsEndAndDismissesAllProcesses) {
  gather();
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  EXPECT_EQ(sent<Farewell>().size(), 2u) << "workers go first";
  EXPECT_FALSE(coordinator_.ended()) << "the final parameters are still to be evaluated";
  receive(Role::kEvaluator, 0,
          Evaluated{.version = 3, .loss = 0.1, .accuracy = 0.9, .samples = 100});
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<StepSummary>().size(), 3u);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
  ASSERT_EQ(recorded<EvaluationRecord>().size(), 1u);
  EXPECT_DOUBLE_EQ(recorded<EvaluationRecord>()[0].accuracy, 0.9);
}

TEST_F(CoordinatorTest, EndsIfTheLastEvaluationArrivesBeforeTheLastClosing) {
  gather();
  for (Step step = 0; step < 2; ++step) close(step, {0, 1});
  receive(Role::kEvaluator, 0, Evaluated{.version = 3, .accuracy = 0.9});
  EXPECT_FALSE(coordinator_.ended());
  for (Step step = 0; step < 3; ++step) report(step, {0, 1});
  close(2, {0, 1});
  EXPECT_TRUE(coordinator_.ended());
}

// A worker's report of the last gradient and the closing of the last step come over different
// connections. The report is recorded even if it arrives later.
TEST_F(CoordinatorTest, WaitsForTheLastReportsOfContributors) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, disconnected("x"), now_, out_);
  for (Step step = 0; step < 2; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  report(2, {0});
  close(2, {0, 1});
  EXPECT_FALSE(coordinator_.ended());
  ASSERT_EQ(sent<Farewell>().size(), 1u) << "workers without missing reports may leave";
  EXPECT_EQ(sent<Farewell>()[0].first.index, 0u);
  EXPECT_TRUE(coordinator_.wake_at());
  report(2, {1});
  EXPECT_TRUE(coordinator_.ended());
  ASSERT_EQ(recorded<StepSummary>().size(), 3u);
  EXPECT_DOUBLE_EQ(recorded<StepSummary>()[2].step.loss, 1.5);
}

TEST_F(CoordinatorTest, DoesNotWaitLongForLastReports) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, disconnected("x"), now_, out_);
  for (Step step = 0; step < 3; ++step) close(step, {0, 1});
  const auto patience = coordinator_.wake_at();
  ASSERT_TRUE(patience);
  coordinator_.on_lost(Role::kWorker, 0, disconnected("killed"), now_, out_);
  EXPECT_FALSE(coordinator_.ended()) << "the other worker is still connected";
  coordinator_.on_time(*patience - 1ns, out_);
  EXPECT_FALSE(coordinator_.ended());
  coordinator_.on_time(*patience, out_);
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

class StopAtTest : public CoordinatorTest {
 protected:
  StopAtTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 30,
                         .evaluate_every = 1,
                         .stop_at = Target{TargetKind::kAccuracy, 0.9}}) {}
};

TEST_F(StopAtTest, EndsAsSoonAsAnEvaluationReachesTheTarget) {
  gather();
  now_ = 1s;
  close(0, {0, 1});
  receive(Role::kEvaluator, 0, Evaluated{.version = 1, .loss = 0.3, .accuracy = 0.899});
  EXPECT_FALSE(coordinator_.ended());
  now_ = 2s;
  close(1, {0, 1});
  now_ = 3s;
  receive(Role::kEvaluator, 0, Evaluated{.version = 2, .loss = 0.2, .accuracy = 0.9});
  EXPECT_TRUE(coordinator_.ended());
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
  EXPECT_EQ(recorded<RunEnd>()[0].elapsed, 3s);
  EXPECT_EQ(recorded<StepSummary>().size(), 2u) << "the open step is not recorded";
  EXPECT_EQ(sent<Farewell>().size(), 5u) << "to all processes";
  const auto events = recorded<EventRecord>();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].payload,
            EventPayload(event::Reached{.version = 2, .target = {TargetKind::kAccuracy, 0.9}}));
  EXPECT_EQ(recorded<RunEnd>()[0].cause, EndCause::kTargetReached);
  receive(Role::kEvaluator, 0, Evaluated{.version = 3, .accuracy = 0.95});
  EXPECT_EQ(recorded<EvaluationRecord>().size(), 2u) << "the last evaluation reached the target";
}

TEST_F(StopAtTest, AnEvaluationAfterTrainingMayReachTheTarget) {
  gather();
  for (Step step = 0; step < 30; ++step) close(step, {0, 1});
  EXPECT_FALSE(coordinator_.ended());
  receive(Role::kEvaluator, 0, Evaluated{.version = 29, .accuracy = 0.91});
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(CoordinatorTest, RecordsTheEvaluationOfAWorker) {
  gather();
  receive(Role::kWorker, 1, Evaluated{.version = 0, .loss = 0.5, .accuracy = 0.75, .samples = 100});
  ASSERT_EQ(recorded<EvaluationRecord>().size(), 1u);
  EXPECT_EQ(recorded<EvaluationRecord>()[0].accuracy, 0.75);
}

TEST_F(CoordinatorTest, RecordsTheLearningRateThatWorkersSet) {
  gather();
  for (const WorkerId each : {1u, 0u}) {
    receive(Role::kWorker, each,
            StepReport{.step = 0, .samples = 4, .loss = 1.0, .learning_rate = 0.1 + each});
  }
  close(0, {0, 1});
  ASSERT_EQ(recorded<StepSummary>().size(), 1u);
  EXPECT_DOUBLE_EQ(recorded<StepSummary>()[0].step.learning_rate, 0.1);
}

class AsynchronousCoordinatorTest : public CoordinatorTest {
 protected:
  AsynchronousCoordinatorTest()
      : CoordinatorTest(
            {.workers = 2, .shards = 2, .steps = 2, .asynchronous = Asynchronous{.staleness = 3}}) {
  }
};

TEST_F(AsynchronousCoordinatorTest, CountsRoundsAndStopsNoWorker) {
  gather();
  EXPECT_TRUE(sent<Plan>()[0].second.asynchronous);
  EXPECT_EQ(sent<Plan>()[0].second.staleness, 3u);
  EXPECT_TRUE(sent<Welcome>()[0].second.asynchronous);
  EXPECT_EQ(recorded<DecisionRecord>()[0].cutoff, 2u);
  EXPECT_EQ(recorded<DecisionRecord>()[0].alive, 2u);
  for (Step step = 0; step < 2; ++step) {
    StepClosed closed;
    closed.step = step;
    closed.arrivals = {{1, 5ms, step}};
    closed.gradients = 2;
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, closed);
  }
  for (const Outgoing& each : out_.messages)
    EXPECT_NE(each.frame.header.type, FrameType::kStop) << "no worker is late";
  receive(Role::kEvaluator, 0, Evaluated{.version = 2});
  const auto summaries = recorded<StepSummary>();
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].step.contributors, 2u);
  EXPECT_EQ(summaries[0].arrivals.size(), 1u);
}

TEST_F(CoordinatorTest, AFastShardMayCloseStepsAheadOfASlowOne) {
  gather();
  const auto closed = [](Step step) {
    StepClosed message;
    message.step = step;
    message.arrivals = {{0, 10ms, step}, {1, 10ms, step}};
    return message;
  };
  receive(Role::kShard, 0, closed(0));
  receive(Role::kShard, 0, closed(1));
  EXPECT_EQ(coordinator_.step(), 0u);
  receive(Role::kShard, 1, closed(0));
  EXPECT_EQ(coordinator_.step(), 1u);
  receive(Role::kShard, 1, closed(1));
  EXPECT_EQ(coordinator_.step(), 2u);
}

TEST_F(CoordinatorTest, EndsARunIfAllGradientsAreNan) {
  gather();
  for (Step step = 0; step < 2; ++step) close(step, {0, 1}, {{0, 0}, {1, 0}});
  EXPECT_FALSE(coordinator_.ended());
  for (Step step = 0; step < 3; ++step) report(step, {0, 1});
  close(2, {0, 1}, {{0, 0}, {1, 0}});
  receive(Role::kEvaluator, 0, Evaluated{.version = 3});
  ASSERT_TRUE(coordinator_.ended());
  bool named = false;
  for (const EventRecord& event : recorded<EventRecord>()) {
    named = named || (event.payload == EventPayload(event::Refused{.tensor = "w"}) &&
                      event.peer == Peer{Role::kWorker, 0});
  }
  EXPECT_EQ(recorded<RunEnd>()[0].cause, EndCause::kDiverged);
  EXPECT_TRUE(named) << "the tensor is named";
}

class EndlessCoordinatorTest : public CoordinatorTest {
 protected:
  EndlessCoordinatorTest() : CoordinatorTest({.workers = 2, .shards = 2, .steps = kEndless}) {}
};

TEST_F(EndlessCoordinatorTest, AnInterruptNamesNoTotal) {
  gather();
  coordinator_.on_interrupt(now_, out_);
  EXPECT_EQ(recorded<RunEnd>().at(0).cause, EndCause::kInterrupted);
}

TEST_F(CoordinatorTest, AnInterruptKeepsTheRecord) {
  gather();
  close(0, {0, 1});
  coordinator_.on_interrupt(now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kInterrupted);
  EXPECT_EQ(recorded<RunEnd>()[0].cause, EndCause::kInterrupted);
  EXPECT_EQ(recorded<StepSummary>().size(), 1u);
  coordinator_.on_interrupt(now_, out_);
  EXPECT_EQ(recorded<RunEnd>().size(), 1u) << "once";
}

TEST_F(CoordinatorTest, RefusesMessagesOfOtherRoles) {
  gather();
  EXPECT_FALSE(coordinator_.on_message(Role::kWorker, 0, StepClosed{}, now_, out_).ok());
  EXPECT_FALSE(coordinator_.on_message(Role::kShard, 0, Evaluated{}, now_, out_).ok());
  StepClosed future;
  future.step = 3;
  EXPECT_FALSE(coordinator_.on_message(Role::kShard, 0, future, now_, out_).ok())
      << "the step is not open";
}

// Every outlier is recorded, but not every one is an event.
TEST_F(CoordinatorTest, ReportsRepeatedOutliersRarely) {
  gather();
  std::vector<Step> steps_with_events;
  for (Step step = 0; step < 3; ++step) {
    out_ = {};
    StepClosed closed;
    closed.step = step;
    closed.elapsed = 10ms;
    closed.samples = 4;
    closed.arrivals = {{0, 10ms, step}, {1, 10ms, step}};
    closed.outliers = {{.worker = 1, .block = 0, .blocks = 1, .ratio = 50.0, .used = step == 1}};
    receive(Role::kShard, 0, closed);
    closed.outliers[0].ratio = 100.0;
    receive(Role::kShard, 1, closed);
    report(step, {0, 1});
    for (const EventRecord& event : recorded<EventRecord>()) {
      const auto* outlier = event.as<event::Outlier>();
      if (outlier == nullptr) continue;
      EXPECT_EQ(event.peer, (Peer{Role::kWorker, 1}));
      EXPECT_EQ(outlier->ratio, 100.0);
      EXPECT_EQ(outlier->used, step == 1);
      steps_with_events.push_back(event.step);
    }
    const auto summaries = recorded<StepSummary>();
    ASSERT_EQ(summaries.size(), 1u);
    const StepRecord& record = summaries[0].step;
    EXPECT_EQ(record.outliers, (std::vector<OutlierRecord>{
                                   {.worker = 1, .blocks = 2, .ratio = 100.0, .used = step == 1}}));
    EXPECT_EQ(record.contributors, step == 1 ? 2u : 1u) << "a clipped gradient is used";
    EXPECT_EQ(record.refused, 0u) << "outliers do not count as refused for divergence";
  }
  EXPECT_EQ(steps_with_events, (std::vector<Step>{0}));
}

// Closings of a step that is not open yet are kept. A repeated closing of a shard is refused at
// once, and the closings of other shards are not lost.
TEST_F(CoordinatorTest, RefusesARepeatedClosingOfAStepThatIsNotOpen) {
  gather();
  const auto closed = [](Step step) {
    return StepClosed{.step = step,
                      .elapsed = 10ms,
                      .arrivals = {{0, 10ms, step}, {1, 10ms, step}},
                      .samples = 8};
  };
  receive(Role::kShard, 0, closed(0));
  receive(Role::kShard, 0, closed(1));
  const Status again = coordinator_.on_message(Role::kShard, 0, closed(1), now_, out_);
  EXPECT_FALSE(again.ok());
  const Status skipped = coordinator_.on_message(Role::kShard, 1, closed(1), now_, out_);
  EXPECT_FALSE(skipped.ok()) << "it has not closed the step before";
  receive(Role::kShard, 1, closed(0));
  EXPECT_EQ(coordinator_.step(), 1u);
  receive(Role::kShard, 1, closed(1));
  EXPECT_EQ(coordinator_.step(), 2u) << "the other shard's closing was kept once";
}

TEST_F(CoordinatorTest, TheTimeOfARunBeginsWithItsFirstStepAndEndsWithItsLast) {
  now_ = 5s;
  gather();
  for (Step step = 0; step < 3; ++step) {
    now_ += 2s;
    report(step, {0, 1});
    close(step, {0, 1});
  }
  now_ += 10s;
  receive(Role::kEvaluator, 0, Evaluated{.version = 3});
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].elapsed, 6s) << "the last evaluation is not training";
}

TEST_F(CoordinatorTest, ARunThatNeverBeganHasNoDuration) {
  now_ = 5s;
  ASSERT_TRUE(hello(shard(0)).ok());
  coordinator_.on_interrupt(now_, out_);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].elapsed, 0s);
}

TEST_F(EndlessCoordinatorTest, DivergesAfterTheLimitOfEmptySteps) {
  gather();
  const auto close_step = [this](Step step, std::vector<StepClosed::Refused> refused) {
    report(step, {0, 1});
    close(step, {0, 1}, std::move(refused));
  };
  const std::vector<StepClosed::Refused> all = {{0, 0}, {1, 0}};
  Step step = 0;
  for (uint32_t empty = 1; empty < StepReporter::kEmptyStepsMax; ++empty) close_step(step++, all);
  close_step(step++, {{0, 0}});  // one gradient was used: counting begins again
  for (uint32_t empty = 1; empty < StepReporter::kEmptyStepsMax; ++empty) close_step(step++, all);
  EXPECT_FALSE(coordinator_.ended());
  close_step(step++, all);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kFailed);
}

}  // namespace
}  // namespace drover

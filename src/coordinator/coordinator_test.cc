// The coordinator brings everybody together, opens steps, keeps membership, and ends the run with a
// reason.
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
  EXPECT_EQ(sent<Welcome>().size(), 2u) << "who comes later is welcomed too";
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
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }
  const auto told = happened<StepSummary>();
  ASSERT_EQ(told.size(), 12u);
  EXPECT_EQ(told[9].step.learning_rate, 0.5) << "decided when the noise was not known";
  // 8/16 * (4 + 16) / (4 + 8), of 0.5.
  EXPECT_DOUBLE_EQ(told[10].step.learning_rate, 0.5 * 0.5 * 20.0 / 12.0);
}

TEST_F(CoordinatorTest, OpensStepZeroWhenEverybodyIsReady) {
  gather();
  ASSERT_EQ(sent<Decision>().size(), 2u) << "one to each shard";
  EXPECT_EQ(sent<Decision>()[0].second, (Decision{.step = 0, .cutoff = 2, .alive = {0, 1}}));
  ASSERT_EQ(happened<DecisionRecord>().size(), 1u);
  EXPECT_EQ(happened<DecisionRecord>()[0].cutoff, 2u) << "never more than there are";
  EXPECT_EQ(happened<DecisionRecord>()[0].alive, 2u);
  EXPECT_TRUE(happened<DecisionRecord>()[0].reason.starts_with("fixed"));
  EXPECT_EQ(happened<PeerRecord>().size(), 5u);
}

TEST_F(CoordinatorTest, RunsToItsEndAndSaysGoodbye) {
  gather();
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  EXPECT_EQ(sent<Farewell>().size(), 2u) << "workers go first";
  EXPECT_FALSE(coordinator_.ended()) << "the final parameters are still to be evaluated";
  tell(Role::kEvaluator, 0, Evaluated{.version = 3, .loss = 0.1, .accuracy = 0.9, .samples = 100});
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<StepSummary>().size(), 3u);
  ASSERT_EQ(happened<RunEnd>().size(), 1u);
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kCompleted);
  ASSERT_EQ(happened<EvaluationRecord>().size(), 1u);
  EXPECT_DOUBLE_EQ(happened<EvaluationRecord>()[0].accuracy, 0.9);
}

TEST_F(CoordinatorTest, EndsEvenIfTheLastEvaluationOvertakesTheLastClosing) {
  gather();
  for (Step step = 0; step < 2; ++step) close(step, {0, 1});
  tell(Role::kEvaluator, 0, Evaluated{.version = 3, .accuracy = 0.9});
  EXPECT_FALSE(coordinator_.ended());
  for (Step step = 0; step < 3; ++step) report(step, {0, 1});
  close(2, {0, 1});
  EXPECT_TRUE(coordinator_.ended());
}

// What a worker says of the last gradient comes over another connection than the closing of the
// last step: it belongs to the record all the same.
TEST_F(CoordinatorTest, WaitsForTheLastWordOfWhoeverArrived) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, disconnected("x"), now_, out_);
  for (Step step = 0; step < 2; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  report(2, {0});
  close(2, {0, 1});
  EXPECT_FALSE(coordinator_.ended());
  ASSERT_EQ(sent<Farewell>().size(), 1u) << "who has nothing more to say may go";
  EXPECT_EQ(sent<Farewell>()[0].first.index, 0u);
  EXPECT_TRUE(coordinator_.wake_at());
  report(2, {1});
  EXPECT_TRUE(coordinator_.ended());
  ASSERT_EQ(happened<StepSummary>().size(), 3u);
  EXPECT_DOUBLE_EQ(happened<StepSummary>()[2].step.loss, 1.5);
}

TEST_F(CoordinatorTest, DoesNotWaitLongForALastWord) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, disconnected("x"), now_, out_);
  for (Step step = 0; step < 3; ++step) close(step, {0, 1});
  const auto patience = coordinator_.wake_at();
  ASSERT_TRUE(patience);
  coordinator_.on_lost(Role::kWorker, 0, disconnected("killed"), now_, out_);
  EXPECT_FALSE(coordinator_.ended()) << "the other one is still here";
  coordinator_.on_time(*patience - 1ns, out_);
  EXPECT_FALSE(coordinator_.ended());
  coordinator_.on_time(*patience, out_);
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kCompleted);
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
  tell(Role::kEvaluator, 0, Evaluated{.version = 1, .loss = 0.3, .accuracy = 0.899});
  EXPECT_FALSE(coordinator_.ended());
  now_ = 2s;
  close(1, {0, 1});
  now_ = 3s;
  tell(Role::kEvaluator, 0, Evaluated{.version = 2, .loss = 0.2, .accuracy = 0.9});
  EXPECT_TRUE(coordinator_.ended());
  ASSERT_EQ(happened<RunEnd>().size(), 1u);
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kCompleted);
  EXPECT_EQ(happened<RunEnd>()[0].elapsed, 3s);
  EXPECT_EQ(happened<StepSummary>().size(), 2u) << "the step that is open is not recorded";
  EXPECT_EQ(sent<Farewell>().size(), 5u) << "everybody is told to go";
  const auto events = happened<EventRecord>();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].payload,
            EventPayload(event::Reached{.version = 2, .target = {TargetKind::kAccuracy, 0.9}}));
  EXPECT_EQ(happened<RunEnd>()[0].cause, EndCause::kTargetReached);
  tell(Role::kEvaluator, 0, Evaluated{.version = 3, .accuracy = 0.95});
  EXPECT_EQ(happened<EvaluationRecord>().size(), 2u) << "the last is the one that reached it";
}

TEST_F(StopAtTest, AnEvaluationThatComesWhenTrainingIsOverMayStillReachIt) {
  gather();
  for (Step step = 0; step < 30; ++step) close(step, {0, 1});
  EXPECT_FALSE(coordinator_.ended());
  tell(Role::kEvaluator, 0, Evaluated{.version = 29, .accuracy = 0.91});
  EXPECT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(CoordinatorTest, RecordsWhatAWorkerHasEvaluated) {
  gather();
  tell(Role::kWorker, 1, Evaluated{.version = 0, .loss = 0.5, .accuracy = 0.75, .samples = 100});
  ASSERT_EQ(happened<EvaluationRecord>().size(), 1u);
  EXPECT_EQ(happened<EvaluationRecord>()[0].accuracy, 0.75);
}

TEST_F(CoordinatorTest, RecordsTheLearningRateThatWorkersTell) {
  gather();
  for (const WorkerId each : {1u, 0u}) {
    tell(Role::kWorker, each,
         StepReport{.step = 0, .samples = 4, .loss = 1.0, .learning_rate = 0.1 + each});
  }
  close(0, {0, 1});
  ASSERT_EQ(happened<StepSummary>().size(), 1u);
  EXPECT_DOUBLE_EQ(happened<StepSummary>()[0].step.learning_rate, 0.1);
}

class FreeRunTest : public CoordinatorTest {
 protected:
  FreeRunTest()
      : CoordinatorTest(
            {.workers = 2, .shards = 2, .steps = 2, .free_running = FreeRunning{.staleness = 3}}) {}
};

TEST_F(FreeRunTest, CountsRoundsAndStopsNobody) {
  gather();
  EXPECT_TRUE(sent<Plan>()[0].second.free_running);
  EXPECT_EQ(sent<Plan>()[0].second.staleness, 3u);
  EXPECT_TRUE(sent<Welcome>()[0].second.free_running);
  EXPECT_EQ(happened<DecisionRecord>()[0].cutoff, 2u);
  EXPECT_EQ(happened<DecisionRecord>()[0].alive, 2u);
  for (Step step = 0; step < 2; ++step) {
    StepClosed closed;
    closed.step = step;
    closed.arrivals = {{1, 5ms, step}};
    closed.gradients = 2;
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }
  for (const Outgoing& each : out_.messages)
    EXPECT_NE(each.frame.header.type, FrameType::kStop) << "nobody is late";
  tell(Role::kEvaluator, 0, Evaluated{.version = 2});
  const auto stories = happened<StepSummary>();
  ASSERT_EQ(stories.size(), 2u);
  EXPECT_EQ(stories[0].step.contributors, 2u);
  EXPECT_EQ(stories[0].arrivals.size(), 1u);
}

TEST_F(CoordinatorTest, AQuickShardsNewsMayOvertakeASlowOnes) {
  gather();
  const auto closed = [](Step step) {
    StepClosed message;
    message.step = step;
    message.arrivals = {{0, 10ms, step}, {1, 10ms, step}};
    return message;
  };
  tell(Role::kShard, 0, closed(0));
  tell(Role::kShard, 0, closed(1));
  EXPECT_EQ(coordinator_.step(), 0u);
  tell(Role::kShard, 1, closed(0));
  EXPECT_EQ(coordinator_.step(), 1u);
  tell(Role::kShard, 1, closed(1));
  EXPECT_EQ(coordinator_.step(), 2u);
}

TEST_F(CoordinatorTest, EndsARunInWhichEveryGradientIsNan) {
  gather();
  for (Step step = 0; step < 2; ++step) close(step, {0, 1}, {{0, 0}, {1, 0}});
  EXPECT_FALSE(coordinator_.ended());
  for (Step step = 0; step < 3; ++step) report(step, {0, 1});
  close(2, {0, 1}, {{0, 0}, {1, 0}});
  tell(Role::kEvaluator, 0, Evaluated{.version = 3});
  ASSERT_TRUE(coordinator_.ended());
  bool named = false;
  for (const EventRecord& event : happened<EventRecord>()) {
    named = named || (event.payload == EventPayload(event::Refused{.tensor = "w"}) &&
                      event.peer == Peer{Role::kWorker, 0});
  }
  EXPECT_EQ(happened<RunEnd>()[0].cause, EndCause::kDiverged);
  EXPECT_TRUE(named) << "the tensor is named";
}

class EndlessCoordinatorTest : public CoordinatorTest {
 protected:
  EndlessCoordinatorTest() : CoordinatorTest({.workers = 2, .shards = 2, .steps = kEndless}) {}
};

TEST_F(EndlessCoordinatorTest, TellsNoTotalThatNobodyKnows) {
  gather();
  coordinator_.on_interrupt(now_, out_);
  EXPECT_EQ(happened<RunEnd>().at(0).cause, EndCause::kInterrupted);
}

TEST_F(CoordinatorTest, AnInterruptKeepsWhatThereIs) {
  gather();
  close(0, {0, 1});
  coordinator_.on_interrupt(now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kInterrupted);
  EXPECT_EQ(happened<RunEnd>()[0].cause, EndCause::kInterrupted);
  EXPECT_EQ(happened<StepSummary>().size(), 1u);
  coordinator_.on_interrupt(now_, out_);
  EXPECT_EQ(happened<RunEnd>().size(), 1u) << "once";
}

TEST_F(CoordinatorTest, RefusesMessagesThatOnlyOthersSend) {
  gather();
  EXPECT_FALSE(coordinator_.on_message(Role::kWorker, 0, StepClosed{}, now_, out_).ok());
  EXPECT_FALSE(coordinator_.on_message(Role::kShard, 0, Evaluated{}, now_, out_).ok());
  StepClosed future;
  future.step = 3;
  EXPECT_FALSE(coordinator_.on_message(Role::kShard, 0, future, now_, out_).ok())
      << "a step that is not open";
}

// Who is out of line is told of, and recorded every time; but not told of in every step.
TEST_F(CoordinatorTest, TellsWhoIsOutOfLineEverMoreRarely) {
  gather();
  std::vector<Step> told;
  for (Step step = 0; step < 3; ++step) {
    out_ = {};
    StepClosed closed;
    closed.step = step;
    closed.elapsed = 10ms;
    closed.samples = 4;
    closed.arrivals = {{0, 10ms, step}, {1, 10ms, step}};
    closed.outliers = {{.worker = 1, .block = 0, .blocks = 1, .ratio = 50.0, .used = step == 1}};
    tell(Role::kShard, 0, closed);
    closed.outliers[0].ratio = 100.0;
    tell(Role::kShard, 1, closed);
    report(step, {0, 1});
    for (const EventRecord& event : happened<EventRecord>()) {
      const auto* outlier = event.as<event::Outlier>();
      if (outlier == nullptr) continue;
      EXPECT_EQ(event.peer, (Peer{Role::kWorker, 1}));
      EXPECT_EQ(outlier->ratio, 100.0);
      EXPECT_EQ(outlier->used, step == 1);
      told.push_back(event.step);
    }
    const auto stories = happened<StepSummary>();
    ASSERT_EQ(stories.size(), 1u);
    const StepRecord& record = stories[0].step;
    EXPECT_EQ(record.outliers, (std::vector<OutlierRecord>{
                                   {.worker = 1, .blocks = 2, .ratio = 100.0, .used = step == 1}}));
    EXPECT_EQ(record.contributors, step == 1 ? 2u : 1u) << "unless it was made shorter, and used";
    EXPECT_EQ(record.refused, 0u) << "that is for NaN, of which a run can die";
  }
  EXPECT_EQ(told, (std::vector<Step>{0}));
}

// News of a step that is not open yet is kept. If one shard tells it twice that is refused at once,
// and the other shards' news is not lost with it.
TEST_F(CoordinatorTest, RefusesNewsThatComesTwiceBeforeItsStepIsOpen) {
  gather();
  const auto closed = [](Step step) {
    return StepClosed{.step = step,
                      .elapsed = 10ms,
                      .arrivals = {{0, 10ms, step}, {1, 10ms, step}},
                      .samples = 8};
  };
  tell(Role::kShard, 0, closed(0));
  tell(Role::kShard, 0, closed(1));
  const Status again = coordinator_.on_message(Role::kShard, 0, closed(1), now_, out_);
  EXPECT_FALSE(again.ok());
  const Status skipped = coordinator_.on_message(Role::kShard, 1, closed(1), now_, out_);
  EXPECT_FALSE(skipped.ok()) << "it has not closed the step before";
  tell(Role::kShard, 1, closed(0));
  EXPECT_EQ(coordinator_.step(), 1u);
  tell(Role::kShard, 1, closed(1));
  EXPECT_EQ(coordinator_.step(), 2u) << "the other shard's news was kept, once";
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
  tell(Role::kEvaluator, 0, Evaluated{.version = 3});
  ASSERT_EQ(happened<RunEnd>().size(), 1u);
  EXPECT_EQ(happened<RunEnd>()[0].elapsed, 6s) << "the last evaluation is not training";
}

TEST_F(CoordinatorTest, ARunThatNeverBeganTookNoTime) {
  now_ = 5s;
  ASSERT_TRUE(hello(shard(0)).ok());
  coordinator_.on_interrupt(now_, out_);
  ASSERT_EQ(happened<RunEnd>().size(), 1u);
  EXPECT_EQ(happened<RunEnd>()[0].elapsed, 0s);
}

TEST_F(EndlessCoordinatorTest, DivergesWithTheLastOfSoManyEmptyStepsInARow) {
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
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kFailed);
}

}  // namespace
}  // namespace drover

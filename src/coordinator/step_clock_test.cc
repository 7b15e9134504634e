#include "coordinator/step_clock.h"

#include <gtest/gtest.h>

#include "coordinator/fixed_policy.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<WorkerId>;
using Turn = EarlyClosings::Turn;

CoordinatorSettings small_run() { return {.workers = 3, .shards = 2, .steps = 4}; }

// Three workers, two shards with a block each.
class StepClockTest : public ::testing::Test {
 protected:
  explicit StepClockTest(const CoordinatorSettings& settings = small_run())
      : clock_(settings, std::make_unique<FixedPolicy>(&notes_), blocks_,
               {.started = 100s, .before = 7s}) {}

  StepClock::Opened open(TimePoint now = 110s) { return clock_.open(members_, 0.1, now); }
  static ShardClosing closing(ShardId shard, Step step, const Ids& arrived = {0, 1, 2},
                              TimePoint received = 111s) {
    StepClosed closed{.step = step, .elapsed = 20ms, .samples = 8, .digest = 1 + shard};
    for (const WorkerId worker : arrived) closed.arrivals.push_back({worker, 10ms, step});
    return {.shard = shard, .closed = closed, .received = received};
  }
  void take(const ShardClosing& closing) {
    ASSERT_EQ(clock_.accept(closing), Turn::kNow);
    clock_.take(closing);
  }
  // Closes the open step on both shards. Returns the workers ordered to stop.
  Ids close(const Ids& arrived = {0, 1, 2}) {
    for (const ShardId shard : {0u, 1u}) take(closing(shard, clock_.step(), arrived));
    EXPECT_TRUE(clock_.may_close());
    return clock_.close(members_, 111s);
  }
  void report(Step step, const Ids& workers = {0, 1, 2}) {
    for (const WorkerId worker : workers)
      clock_.on_report(worker, {.step = step, .samples = 4, .loss = 1.0});
  }

  const BlockMap blocks_{Layout({{"a", 70'000}, {"b", 70'000}}), 2, kBlockFloatsMax};
  PolicyNotes notes_;
  StepClock clock_;
  Membership members_{3};
};

TEST_F(StepClockTest, CountsTheSteps) {
  for (Step step = 0; step < 4; ++step) {
    EXPECT_EQ(clock_.step(), step);
    EXPECT_FALSE(clock_.at_end());
    EXPECT_EQ(open().decision.step, step);
    EXPECT_FALSE(clock_.may_close());
    close();
  }
  EXPECT_TRUE(clock_.at_end());
  EXPECT_TRUE(clock_.is_over());
  EXPECT_FALSE(clock_.may_close());
  EXPECT_EQ(notes_.learned.size(), 4u);
  EXPECT_EQ(clock_.digest(), 12u);
}

TEST_F(StepClockTest, AStepClosesWhenAllShardsHave) {
  open();
  take(closing(0, 0));
  EXPECT_FALSE(clock_.may_close());
  take(closing(1, 0));
  EXPECT_TRUE(clock_.may_close());
}

TEST_F(StepClockTest, RefusesRepeatedAndUnknownClosings) {
  open();
  take(closing(0, 0));
  EXPECT_EQ(clock_.accept(closing(0, 0)), Turn::kWrong);
  for (const Step step : {1u, 2u, 3u}) EXPECT_EQ(clock_.accept(closing(0, step)), Turn::kEarly);
  EXPECT_EQ(clock_.pending(), 3u + 1u) << "and the open step";
  EXPECT_EQ(clock_.accept(closing(0, 4)), Turn::kWrong) << "there is no such step";
}

TEST_F(StepClockTest, ReturnsEarlyClosingsWhenTheirStepIsOpen) {
  open();
  take(closing(0, 0));
  EXPECT_EQ(clock_.accept(closing(0, 1)), Turn::kEarly);
  take(closing(1, 0));
  EXPECT_FALSE(clock_.take_early());
  clock_.close(members_, 111s);
  EXPECT_EQ(clock_.take_early()->closed.step, 1u);
}

TEST_F(StepClockTest, RecordsStepsInTheTimeOfTheRun) {
  open(110s);
  take(closing(0, 0, {0, 1, 2}, 111s));
  take(closing(1, 0, {0, 1, 2}, 112s));
  clock_.close(members_, 112s);
  EXPECT_TRUE(clock_.take_summaries(false).empty());
  EXPECT_EQ(clock_.unreported(), (std::set<WorkerId>{0, 1, 2}));
  report(0);
  EXPECT_TRUE(clock_.unreported().empty());
  const auto summaries = clock_.take_summaries(false);
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].step.at, 17s) << "7 s were in earlier incarnations";
  EXPECT_EQ(summaries[0].step.elapsed, 2s);
  EXPECT_EQ(summaries[0].step.learning_rate, 0.1);
}

TEST_F(StepClockTest, DecisionsAreForEveryShard) {
  notes_.choice = {.cutoff = 2, .time_limit = 0.5, .reason = "fixed"};
  EXPECT_EQ(open().decision.cutoff, 2u);
  auto decisions = clock_.decisions(members_);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[1].step, 0u);
  EXPECT_EQ(decisions[1].cutoff, 2u);
  EXPECT_EQ(decisions[1].time_limit, 500ms);
  take(closing(0, 0, {0, 1, 2}, 111s));
  take(closing(1, 0, {0, 1, 2}, 113s));
  clock_.close(members_, 113s);
  open(113s);
  decisions = clock_.decisions(members_);
  EXPECT_EQ(decisions[0].time_limit, 2500ms) << "shard 0 opened the step 2 s earlier";
  EXPECT_EQ(decisions[1].time_limit, 500ms);
}

TEST_F(StepClockTest, AfterTheLastStepDecisionsAreStillForIt) {
  for (Step step = 0; step < 4; ++step) {
    open();
    close();
  }
  members_.remove(1);
  EXPECT_EQ(clock_.decisions(members_).at(0).step, 3u);
  EXPECT_EQ(clock_.decisions(members_).at(0).alive, (Ids{0, 2}));
}

TEST_F(StepClockTest, OnlyStragglersThatAreMembersStop) {
  open();
  members_.remove(2);
  clock_.on_removed(2);
  EXPECT_EQ(close({0}), Ids{1});
  open();
  EXPECT_EQ(close({0, 1}), Ids{});
}

TEST_F(StepClockTest, RecordsTheCostOfStopping) {
  open();
  ASSERT_EQ(close({0, 1}), Ids{2});
  const Abandoned abandoned{.step = 0, .resumed = 1, .wasted = 5ms};
  EXPECT_FALSE(clock_.on_abandoned(1, abandoned, 112s)) << "it was not ordered to stop";
  EXPECT_EQ(clock_.on_abandoned(2, abandoned, 112s)->restart, 1s);
  open();
  ASSERT_EQ(close({0, 1}), Ids{2});
  clock_.forget(2);
  EXPECT_FALSE(clock_.on_abandoned(2, {.step = 1, .resumed = 2}, 112s)) << "its connection ended";
}

TEST_F(StepClockTest, APolicyLearnsLateRunTimes) {
  open();
  close({0, 1});
  open();
  ShardClosing late = closing(0, 1);
  late.closed.late = {{2, 90ms, 0}};
  take(late);
  EXPECT_TRUE(notes_.late.empty()) << "arrived on one shard of two";
  late.shard = 1;
  take(late);
  EXPECT_EQ(notes_.late, (std::vector<std::tuple<Step, WorkerId, double>>{{0, 2, 0.09}}));
}

TEST_F(StepClockTest, ArrivalsMayChangeTheDecision) {
  notes_.choice.review.arrivals = 1;
  open();
  EXPECT_FALSE(clock_.on_arrived(0, {.step = 0, .arrivals = {{1, 5ms, 0}}}, members_, 110s));
  EXPECT_FALSE(clock_.on_arrived(1, {.step = 1, .arrivals = {{1, 5ms, 1}}}, members_, 110s))
      << "that step is not open";
  notes_.revised = Choice{.cutoff = 1, .reason = "now"};
  const auto again =
      clock_.on_arrived(1, {.step = 0, .arrivals = {{1, 5ms, 0}}}, members_, 110006ms);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->step, 0u);
  EXPECT_EQ(again->at, 6ms);
  EXPECT_EQ(clock_.decisions(members_).at(0).cutoff, 1u);
}

TEST_F(StepClockTest, WakesForAReview) {
  notes_.choice.review.at = 2.0;
  for (Step step = 0; step < 4; ++step) {
    open();
    EXPECT_EQ(clock_.wake_at(), 112s);
    close();
  }
  EXPECT_FALSE(clock_.wake_at()) << "no step is open";
}

TEST_F(StepClockTest, ReviewsTheDecisionWhenItIsDue) {
  notes_.choice.review.at = 2.0;
  open();
  notes_.revised = Choice{.cutoff = 1, .reason = "now"};
  EXPECT_EQ(clock_.on_time(members_, 112s)->at, 2s);
}

TEST_F(StepClockTest, KnowsTheNoiseBeforeTheLastClosing) {
  open();
  ShardClosing noisy = closing(0, 0);
  noisy.closed.signal = 1.0;
  noisy.closed.noise = 5.0;
  take(noisy);
  noisy.shard = 1;
  take(noisy);
  EXPECT_EQ(clock_.noise().steps, 1u);
  EXPECT_EQ(clock_.noise_before().steps, 0u);
}

TEST_F(StepClockTest, WithoutBalanceNoSharesAreDealt) {
  EXPECT_TRUE(open().shares.empty());
  EXPECT_EQ(clock_.pull_share(), 1.0);
}

class FinishingClockTest : public StepClockTest {
 protected:
  FinishingClockTest()
      : StepClockTest(
            {.workers = 3, .shards = 2, .steps = 4, .stragglers = StragglerRule::kFinish}) {}
};

TEST_F(FinishingClockTest, BusyWorkersAreNotExpected) {
  open();
  EXPECT_EQ(close({0, 1}), Ids{});
  open();
  EXPECT_EQ(notes_.alive.back(), (Ids{0, 1}));
  clock_.forget(2);
  close({0, 1});
  open();
  EXPECT_EQ(notes_.alive.back(), (Ids{0, 1})) << "worker 2 missed the step again";
}

TEST_F(FinishingClockTest, AWorkerThatArrivesIsNoLongerBusy) {
  open();
  close({0, 1});
  open();
  close({0, 1, 2});
  open();
  EXPECT_EQ(notes_.alive.back(), (Ids{0, 1, 2}));
}

TEST_F(FinishingClockTest, IfAllAreBusyAllAreExpected) {
  open();
  close({});
  open();
  EXPECT_EQ(notes_.alive.back(), (Ids{0, 1, 2}));
}

TEST_F(FinishingClockTest, ALateGradientEndsBusy) {
  open();
  close({0, 1});
  open();
  for (const ShardId shard : {0u, 1u}) {
    ShardClosing late = closing(shard, 1, {0, 1});
    late.closed.late = {{2, 90ms, 0}};
    take(late);
  }
  members_.remove(2);  // so that it is not asked to finish step 1
  clock_.close(members_, 112s);
  members_.add(2);
  open();
  EXPECT_EQ(notes_.alive.back(), (Ids{0, 1, 2}));
}

class BalancedClockTest : public StepClockTest {
 protected:
  BalancedClockTest()
      : StepClockTest({.workers = 3,
                       .shards = 2,
                       .steps = 4,
                       .full_samples = 24,
                       .batch = 8,
                       .balance = BalanceSettings{}}) {}
};

TEST_F(BalancedClockTest, SharesOfTheNextStepAreDealtOnce) {
  const auto shares = open().shares;
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[2].first, 2u);
  EXPECT_EQ(shares[2].second, (Share{.from = 1, .first = 16, .count = 8, .total = 24}));
  close();
  clock_.forget(1);
  const auto again = open().shares;
  ASSERT_EQ(again.size(), 1u) << "the next incarnation of worker 1 needs its share";
  EXPECT_EQ(again[0].first, 1u);
}

class PartialPullClockTest : public StepClockTest {
 protected:
  PartialPullClockTest()
      : StepClockTest({.workers = 3, .shards = 2, .steps = 4, .pull = {.share = 0.5}}) {}
};

TEST_F(PartialPullClockTest, AStepMayCloseBeforeAllShardsHaveClosedIt) {
  open();
  EXPECT_FALSE(clock_.may_close());
  take(closing(0, 0, {0, 1}));
  EXPECT_TRUE(clock_.may_close());
  EXPECT_EQ(clock_.close(members_, 111s), Ids{2});
  EXPECT_EQ(clock_.step(), 1u);
  report(0);
  EXPECT_TRUE(clock_.take_summaries(false).empty()) << "the record waits for the other shards";
  open();
  take(closing(1, 0, {0, 1}));
  EXPECT_EQ(clock_.take_summaries(false).size(), 1u);
}

TEST_F(PartialPullClockTest, IsOverWhenAllShardsHaveClosedAllSteps) {
  for (Step step = 0; step < 4; ++step) {
    open();
    take(closing(0, step));
    clock_.close(members_, 111s);
  }
  EXPECT_TRUE(clock_.at_end());
  EXPECT_FALSE(clock_.is_over());
  for (Step step = 0; step < 4; ++step) take(closing(1, step));
  EXPECT_TRUE(clock_.is_over());
}

class ChosenPullClockTest : public StepClockTest {
 protected:
  ChosenPullClockTest()
      : StepClockTest(
            {.workers = 3, .shards = 2, .steps = 4, .pull = {.choose = true, .warmup = 1}}) {}
};

TEST_F(ChosenPullClockTest, TheShareFollowsReportedResponses) {
  EXPECT_FALSE(open().pull);
  StepReport slow{.compute = 1s, .responses = {{.time = 1s, .came = true}, {.time = 5s}}};
  for (int times = 0; times < 40; ++times) clock_.on_report(0, slow);
  close();
  EXPECT_EQ(clock_.pull_share(), 1.0);
  EXPECT_TRUE(open().pull);
  EXPECT_EQ(clock_.pull_share(), 0.5) << "workers do not wait for the slow shard";
}

class LongPartialPullClockTest : public StepClockTest {
 protected:
  LongPartialPullClockTest()
      : StepClockTest({.workers = 3, .shards = 2, .steps = 100, .pull = {.share = 0.5}}) {}
};

TEST_F(LongPartialPullClockTest, ASlowShardIsAtMostSomeStepsBehind) {
  while (true) {
    open();
    take(closing(0, clock_.step()));
    if (!clock_.may_close()) break;
    clock_.close(members_, 111s);
  }
  EXPECT_EQ(clock_.step(), 32u);
  take(closing(1, 0));
  EXPECT_TRUE(clock_.may_close());
}

class ContinuingClockTest : public StepClockTest {
 protected:
  static CoordinatorSettings continuing() {
    CoordinatorSettings settings = small_run();
    settings.resume = ResumeFrom{.step = 2, .noise = {.signal = 1.0, .noise = 2.0, .steps = 9}};
    return settings;
  }
  ContinuingClockTest() : StepClockTest(continuing()) { notes_.first = 2; }
};

TEST_F(ContinuingClockTest, BeginsWithTheFirstStepThatIsNotDone) {
  EXPECT_EQ(clock_.step(), 2u);
  EXPECT_EQ(clock_.noise().steps, 9u);
  EXPECT_EQ(open().decision.step, 2u);
  close();
  EXPECT_EQ(clock_.step(), 3u);
}

}  // namespace
}  // namespace drover

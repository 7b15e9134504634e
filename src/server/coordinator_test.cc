// The coordinator brings everybody together, opens steps, keeps membership, and ends the run with a
// reason.
#include "server/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace drover {
namespace {

using namespace std::chrono_literals;

class CoordinatorTest : public ::testing::Test {
 protected:
  explicit CoordinatorTest(CoordinatorSettings settings = {.workers = 2, .shards = 2, .steps = 3})
      : coordinator_(settings, settings.free_running ? nullptr : std::make_unique<Fixed>(&policy_),
                     0s) {}

  // Decides what the test says, and notes what it is told.
  struct Notes {
    Choice choice{.cutoff = 1'000, .reason = "fixed"};
    std::vector<Step> decided;
    double noise = 0.0;                        // that was told with the last one
    std::vector<std::vector<WorkerId>> alive;  // in each of those
    std::vector<StepTimes> learned;
    std::vector<std::tuple<Step, WorkerId, double>> late;
    std::optional<Choice> revised;  // what it says when it is asked again
    std::vector<std::pair<double, std::vector<double>>> asked_again;  // when, who was here
  };
  class Fixed : public Policy {
   public:
    explicit Fixed(Notes* notes) : notes_(notes) {}
    Choice decide(const Situation& situation) override {
      // Before a step is decided, everything before it has been learned.
      EXPECT_EQ(notes_->learned.size(), situation.step);
      notes_->decided.push_back(situation.step);
      notes_->noise = situation.noise;
      notes_->alive.emplace_back(situation.alive.begin(), situation.alive.end());
      return notes_->choice;
    }
    std::optional<Choice> reconsider(const Midway& midway) override {
      notes_->asked_again.emplace_back(
          midway.now, std::vector<double>(midway.arrived.begin(), midway.arrived.end()));
      return notes_->revised;
    }
    void learn(const StepTimes& times) override { notes_->learned.push_back(times); }
    void learn_late(Step step, WorkerId worker, double seconds) override {
      EXPECT_LT(step, notes_->learned.size());
      notes_->late.emplace_back(step, worker, seconds);
    }

   private:
    Notes* notes_;
  };

  Hello shard(uint32_t index) {
    return {.role = Role::kShard,
            .index = index,
            .host = "here",
            .pid = 10 + index,
            .address = "unix:s" + std::to_string(index)};
  }
  Hello worker(uint32_t index) {
    return {.role = Role::kWorker,
            .index = index,
            .host = "here",
            .pid = 20 + index,
            .tensors = {{"w", 64, {}}, {"b", 32, {}}}};
  }
  Hello evaluator() {
    Hello hello = worker(0);
    hello.role = Role::kEvaluator;
    return hello;
  }

  Status hello(const Hello& who) { return coordinator_.on_hello(who, now_, out_); }
  void tell(Role role, uint32_t index, const Control& message) {
    const Status status = coordinator_.on_message(role, index, message, now_, out_);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }

  void gather() {
    for (const Hello& who : {shard(0), shard(1), worker(0), worker(1), evaluator()})
      ASSERT_TRUE(hello(who).ok());
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, Ready{});
    for (const uint32_t index : {0u, 1u}) tell(Role::kWorker, index, Ready{});
  }

  void close(Step step, const std::vector<WorkerId>& arrived,
             std::vector<StepClosed::Refused> refused = {}) {
    StepClosed closed;
    closed.step = step;
    closed.elapsed = 10ms;
    closed.samples = 8;
    closed.refused = std::move(refused);
    for (const WorkerId each : arrived) closed.arrivals.push_back({each, 10ms, step});
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }

  void report(Step step, const std::vector<WorkerId>& workers) {
    for (const WorkerId each : workers)
      tell(Role::kWorker, each, StepReport{.step = step, .samples = 4, .loss = 1.0 + each});
  }

  template <typename Message>
  std::vector<std::pair<Address, Message>> sent() const {
    std::vector<std::pair<Address, Message>> found;
    for (const Outgoing& each : out_.messages) {
      if (const auto* control = std::get_if<Control>(&each.frame.payload)) {
        if (const auto* message = std::get_if<Message>(control))
          found.emplace_back(each.to, *message);
      }
    }
    return found;
  }
  template <typename Record>
  std::vector<Record> happened() const {
    std::vector<Record> found;
    for (const Happening& each : out_.happenings) {
      if (const auto* record = std::get_if<Record>(&each)) found.push_back(*record);
    }
    return found;
  }

  Notes policy_;
  Coordinator coordinator_;
  CoordinatorOutput out_;
  TimePoint now_{};
};

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

class LongCoordinatorTest : public CoordinatorTest {
 protected:
  LongCoordinatorTest() : CoordinatorTest({.workers = 2, .shards = 2, .steps = 30, .batch = 4}) {}
};

TEST_F(LongCoordinatorTest, TellsShardsAndThePolicyTheNoiseScaleWhenItIsKnown) {
  gather();
  for (Step step = 0; step < 12; ++step) {
    EXPECT_DOUBLE_EQ(sent<Decision>().back().second.noise_scale, step < 10 ? 0.0 : 6.0) << step;
    EXPECT_DOUBLE_EQ(policy_.noise, step < 10 ? 0.0 : 1.5) << "in gradients of 4 samples";
    StepClosed closed{.step = step, .elapsed = 10ms, .samples = 8, .signal = 1.0, .noise = 6.0};
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }
}

class CoordinatorRateRuleTest : public CoordinatorTest {
 protected:
  CoordinatorRateRuleTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 30,
                         .schedule = {.base = 0.5, .rule = RateRule::kAdaScale},
                         .full_samples = 16}) {}
};

TEST_F(CoordinatorRateRuleTest, TheRecordHasTheLearningRateThatWasUsed) {
  gather();
  EXPECT_EQ(sent<Plan>()[0].second.full_samples, 16u);
  EXPECT_EQ(sent<Plan>()[0].second.schedule.rule, RateRule::kAdaScale);
  for (Step step = 0; step < 12; ++step) {
    StepClosed closed{.step = step, .elapsed = 10ms, .samples = 8, .signal = 1.0, .noise = 4.0};
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }
  const auto told = happened<StepStory>();
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

// Shard 0 closed step 0, and opened step 1, 30 ms before shard 1: it counts the limit from there.
TEST_F(CoordinatorTest, ATimeLimitEndsEverywhereAtOnceThoughShardsOpenAStepOneByOne) {
  policy_.choice = {.cutoff = 2, .time_limit = 1.5, .reason = "because"};
  gather();
  StepClosed closed{.step = 0, .elapsed = 50ms};
  closed.samples = 8;
  now_ = 50ms;
  tell(Role::kShard, 0, closed);
  now_ = 80ms;
  out_ = {};
  tell(Role::kShard, 1, closed);
  ASSERT_EQ(sent<Decision>().size(), 2u);
  EXPECT_EQ(sent<Decision>()[0].second.time_limit, 1530ms);
  EXPECT_EQ(sent<Decision>()[1].second.time_limit, 1500ms);
}

TEST_F(CoordinatorTest, RefusesStrangersDuplicatesAndOtherModels) {
  gather();
  EXPECT_FALSE(hello(worker(0)).ok());
  EXPECT_FALSE(hello(worker(2)).ok());
  EXPECT_FALSE(hello(shard(2)).ok());
  EXPECT_FALSE(hello(shard(0)).ok());
  EXPECT_FALSE(hello(evaluator()).ok());
}

TEST_F(CoordinatorTest, SaysHowAModelDiffers) {
  ASSERT_TRUE(hello(worker(0)).ok());
  Hello other = worker(1);
  other.tensors.pop_back();
  const Status refused = hello(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("64 parameters in 1 tensors, theirs has 96 parameters in "
                                         "2 tensors; the first that differs is none, where theirs "
                                         "has b"),
            std::string::npos)
      << refused.error().message;
  other = worker(1);
  other.tensors[0].rate = 0.5;
  EXPECT_NE(hello(other).error().message.find("is w, in size or in how it is learned"),
            std::string::npos);
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
  EXPECT_EQ(happened<StepStory>().size(), 3u);
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
  coordinator_.on_lost(Role::kEvaluator, 0, "x", now_, out_);
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
  ASSERT_EQ(happened<StepStory>().size(), 3u);
  EXPECT_DOUBLE_EQ(happened<StepStory>()[2].step.loss, 1.5);
}

TEST_F(CoordinatorTest, DoesNotWaitLongForALastWord) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, "x", now_, out_);
  for (Step step = 0; step < 3; ++step) close(step, {0, 1});
  const auto patience = coordinator_.wake_at();
  ASSERT_TRUE(patience);
  coordinator_.on_lost(Role::kWorker, 0, "killed", now_, out_);
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
  EXPECT_EQ(happened<StepStory>().size(), 2u) << "the step that is open is not recorded";
  EXPECT_EQ(sent<Farewell>().size(), 5u) << "everybody is told to go";
  const auto events = happened<EventRecord>();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, "reached");
  EXPECT_EQ(events[0].text, "the parameters after 2 steps reach accuracy=0.9; the run ends here");
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

TEST_F(CoordinatorTest, TheRunIsCompleteWhenTheLastWorkerHasLeft) {
  gather();
  close(0, {0, 1});
  out_ = {};
  tell(Role::kWorker, 1, Farewell{RunOutcome::kCompleted, ""});
  ASSERT_EQ(happened<EventRecord>().size(), 1u);
  EXPECT_EQ(happened<EventRecord>()[0].kind, "left");
  EXPECT_EQ(sent<Decision>().back().second.alive, std::vector<WorkerId>{0});
  EXPECT_TRUE(happened<RunEnd>().empty()) << "the others go on";
  coordinator_.on_lost(Role::kWorker, 1, "it is gone", now_, out_);
  EXPECT_EQ(happened<EventRecord>().size(), 1u) << "who has left is not lost";
  tell(Role::kWorker, 0, Farewell{RunOutcome::kCompleted, ""});
  ASSERT_EQ(happened<RunEnd>().size(), 1u);
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
  ASSERT_EQ(happened<StepStory>().size(), 1u);
  EXPECT_DOUBLE_EQ(happened<StepStory>()[0].step.learning_rate, 0.1);
}

class BroughtModelTest : public CoordinatorTest {
 protected:
  BroughtModelTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 3,
                         .optimizer = {.ema_decay = 0.9},
                         .schedule = {.rule = RateRule::kSqrt},
                         .workers_bring_model = true,
                         .told = {.slow = {"worker=1,factor=2"}},
                         .batch = 16,
                         .seed = 5}) {}
  Hello learner(uint32_t index, double rate = 0.25) {
    Hello hello = worker(index);
    hello.learning = Learning{.optimizer = {.kind = OptimizerKind::kAdam}, .rate = rate};
    return hello;
  }
};

TEST_F(BroughtModelTest, LearnsAsTheFirstWorkerSaysAndTheRunAdds) {
  for (const Hello& who : {shard(0), shard(1), learner(0)}) ASSERT_TRUE(hello(who).ok());
  const Plan plan = sent<Plan>().at(0).second;
  EXPECT_EQ(plan.optimizer.kind, OptimizerKind::kAdam);
  EXPECT_EQ(plan.optimizer.ema_decay, 0.9);
  EXPECT_EQ(plan.schedule.base, 0.25);
  EXPECT_EQ(plan.schedule.rule, RateRule::kSqrt);
  const Welcome welcome = sent<Welcome>().at(0).second;
  EXPECT_EQ(std::tuple(welcome.workers, welcome.batch, welcome.seed), std::tuple(2u, 16u, 5u));
  EXPECT_EQ(welcome.slow, std::vector<std::string>{"worker=1,factor=2"});
}

TEST_F(BroughtModelTest, EndsWhenItsWorkersHaveLeftWithTheModel) {
  for (const Hello& who : {shard(0), shard(1), learner(0), learner(1), evaluator()})
    ASSERT_TRUE(hello(who).ok());
  coordinator_.on_lost(Role::kEvaluator, 0, "there is none", now_, out_);
  for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, Ready{});
  for (const uint32_t index : {0u, 1u}) tell(Role::kWorker, index, Ready{});
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  EXPECT_EQ(sent<Farewell>().size(), 2u) << "workers, but shards stay";
  EXPECT_TRUE(happened<RunEnd>().empty());
  tell(Role::kWorker, 0, Farewell{RunOutcome::kCompleted, ""});
  EXPECT_TRUE(happened<RunEnd>().empty());
  const auto patience = coordinator_.wake_at();
  ASSERT_TRUE(patience) << "one that never leaves is not waited for";
  now_ = *patience;
  coordinator_.on_time(now_, out_);
  ASSERT_EQ(happened<RunEnd>().size(), 1u);
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(BroughtModelTest, RefusesWhoWantsToLearnOtherwise) {
  ASSERT_TRUE(hello(learner(0)).ok());
  const Status other = hello(learner(1, 0.5));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("adam with a learning rate of 0.5"), std::string::npos)
      << other.error().message;
  EXPECT_FALSE(hello(worker(1)).ok()) << "who does not say how";
  EXPECT_TRUE(hello(learner(1)).ok());
}

TEST_F(CoordinatorTest, AWorkerThatIsLostIsNotWaitedFor) {
  gather();
  out_ = {};
  now_ = 2s;
  coordinator_.on_lost(Role::kWorker, 1, "the connection was closed", now_, out_);
  ASSERT_EQ(sent<Decision>().size(), 2u);
  EXPECT_EQ(sent<Decision>()[0].second, (Decision{.step = 0, .cutoff = 1, .alive = {0}}));
  ASSERT_EQ(happened<EventRecord>().size(), 1u);
  const EventRecord event = happened<EventRecord>()[0];
  EXPECT_EQ(event.kind, "lost");
  EXPECT_EQ(event.peer, "worker 1");
  EXPECT_EQ(event.at, 2s);
  EXPECT_NE(event.text.find("the connection was closed"), std::string::npos);
  close(0, {0});
  EXPECT_FALSE(coordinator_.ended());
  EXPECT_EQ(sent<Decision>().back().second, (Decision{.step = 1, .cutoff = 1, .alive = {0}}));
}

TEST_F(CoordinatorTest, AWorkerThatComesBackTakesPartFromTheNextStepOn) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  out_ = {};
  ASSERT_TRUE(hello(worker(1)).ok());
  EXPECT_EQ(sent<Welcome>().size(), 1u);
  EXPECT_EQ(happened<PeerRecord>().size(), 1u) << "it has another process now";
  close(0, {0});
  EXPECT_EQ(sent<Decision>().back().second.alive, std::vector<WorkerId>{0}) << "not ready yet";
  tell(Role::kWorker, 1, Ready{});
  EXPECT_EQ(sent<Decision>().back().second.step, 1u) << "nothing changes inside a step";
  out_ = {};
  close(1, {0});
  EXPECT_EQ(sent<Decision>().back().second, (Decision{.step = 2, .cutoff = 2, .alive = {0, 1}}));
  ASSERT_EQ(happened<EventRecord>().size(), 1u);
  EXPECT_EQ(happened<EventRecord>()[0].kind, "joined");
  EXPECT_EQ(happened<EventRecord>()[0].peer, "worker 1");
  close(2, {0, 1});
  EXPECT_EQ(policy_.learned[1].contributors, 1u);
  EXPECT_EQ(policy_.learned[2].contributors, 2u);
}

TEST_F(CoordinatorTest, OneThatIsLostAgainBeforeItTakesPartChangesNothing) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  ASSERT_TRUE(hello(worker(1)).ok());
  tell(Role::kWorker, 1, Ready{});
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  close(0, {0});
  EXPECT_EQ(sent<Decision>().back().second.alive, std::vector<WorkerId>{0});
  EXPECT_TRUE(hello(worker(1)).ok()) << "and may try again";
}

TEST_F(CoordinatorTest, WhenTheTrainingIsOverNobodyIsAdmitted) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  for (Step step = 0; step < 3; ++step) close(step, {0});
  EXPECT_FALSE(hello(worker(1)).ok());
}

class LatecomersTest : public CoordinatorTest {
 protected:
  LatecomersTest()
      : CoordinatorTest({.workers = 4, .workers_at_start = 2, .shards = 2, .steps = 3}) {}
};

TEST_F(LatecomersTest, AreNotWaitedForAndAreWelcomeWhenTheyCome) {
  gather();
  EXPECT_EQ(sent<Decision>()[0].second.alive, (std::vector<WorkerId>{0, 1}));
  ASSERT_TRUE(hello(worker(3)).ok());
  tell(Role::kWorker, 3, Ready{});
  EXPECT_FALSE(hello(worker(4)).ok()) << "there are 4";
  close(0, {0, 1});
  EXPECT_EQ(sent<Decision>().back().second.alive, (std::vector<WorkerId>{0, 1, 3}));
  close(1, {0, 1, 3});
  EXPECT_EQ(policy_.learned[0].known[3], Known::kNothing);
  EXPECT_EQ(policy_.learned[1].known[3], Known::kArrived);
}

class JoinersTest : public CoordinatorTest {
 protected:
  JoinersTest()
      : CoordinatorTest({.workers = 4,
                         .workers_at_start = 2,
                         .shards = 2,
                         .steps = 3,
                         .told = {.job = "steps = 3"}}) {}
};

TEST_F(JoinersTest, AreToldTheJobAndAPlaceOfTheirOwn) {
  gather();
  const auto first = coordinator_.offer_place(now_);
  const auto second = coordinator_.offer_place(now_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value().job, "steps = 3");
  EXPECT_EQ(first.value().index, 2u);
  EXPECT_EQ(second.value().index, 3u);
  const auto third = coordinator_.offer_place(now_);
  ASSERT_FALSE(third.ok());
  EXPECT_NE(third.error().message.find("--workers-max"), std::string::npos);
}

TEST_F(JoinersTest, ThatDoNotComeLoseTheirPlace) {
  gather();
  ASSERT_TRUE(coordinator_.offer_place(now_).ok());
  ASSERT_TRUE(hello(worker(2)).ok());
  ASSERT_EQ(coordinator_.offer_place(now_).value().index, 3u);
  EXPECT_EQ(coordinator_.offer_place(now_ + Coordinator::kPlaceKept).value().index, 3u);
}

TEST_F(JoinersTest, DoNotGetThePlaceOfSomebodyWhoMayComeBack) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  EXPECT_EQ(coordinator_.offer_place(now_).value().index, 2u);
  ASSERT_TRUE(hello(worker(2)).ok());
  coordinator_.on_lost(Role::kWorker, 2, "x", now_, out_);
  EXPECT_EQ(coordinator_.offer_place(now_).value().index, 2u) << "a joiner's is free again";
}

TEST_F(JoinersTest, AreNotWantedWhenThereIsNothingToDo) {
  gather();
  for (Step step = 0; step < 3; ++step) close(step, {0, 1});
  EXPECT_FALSE(coordinator_.offer_place(now_).ok());
}

TEST_F(LatecomersTest, NeedAJobThatCanBeTold) {
  gather();
  EXPECT_FALSE(coordinator_.offer_place(now_).ok());
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
  EXPECT_EQ(happened<DecisionRecord>()[0].reason,
            "ssp: every gradient is used as it comes, a step is as many as there are workers: 2; "
            "the fastest at most 3 ahead of the slowest");
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
  const auto stories = happened<StepStory>();
  ASSERT_EQ(stories.size(), 2u);
  EXPECT_EQ(stories[0].step.contributors, 2u);
  EXPECT_EQ(stories[0].arrivals.size(), 1u);
}

TEST_F(CoordinatorTest, SaysWhatThePolicyChose) {
  policy_.choice = {.cutoff = 2, .time_limit = 1.5, .at_least = 2, .reason = "because"};
  gather();
  EXPECT_EQ(
      sent<Decision>()[0].second,
      (Decision{.step = 0, .cutoff = 2, .time_limit = 1500ms, .at_least = 2, .alive = {0, 1}}));
  EXPECT_EQ(happened<DecisionRecord>()[0].reason, "because");
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  EXPECT_EQ(sent<Decision>().back().second,
            (Decision{.step = 0, .cutoff = 1, .time_limit = 1500ms, .at_least = 1, .alive = {0}}));
  EXPECT_EQ(policy_.decided, std::vector<Step>{0}) << "the same choice, for fewer";
  policy_.choice.time_limit = 0.0;
  close(0, {0});
  EXPECT_EQ(sent<Decision>().back().second.time_limit, 1ns) << "zero would mean none";
}

TEST_F(CoordinatorTest, ThePolicyLearnsWhatBecameKnownAndNothingElse) {
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
  for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  ASSERT_EQ(policy_.late.size(), 1u);
  EXPECT_EQ(policy_.late[0], (std::tuple<Step, WorkerId, double>(0, 1, 0.08)));
  EXPECT_EQ(policy_.learned[1].known, (std::vector<Known>{Known::kArrived, Known::kArrived}));
}

TEST_F(CoordinatorTest, OfAWorkerThatIsLostThePolicyLearnsNothing) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  close(0, {0});
  ASSERT_EQ(policy_.learned.size(), 1u);
  EXPECT_EQ(policy_.learned[0].known, (std::vector<Known>{Known::kArrived, Known::kNothing}));
}

TEST_F(CoordinatorTest, WithoutWorkersThereIsNoRun) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, "x", now_, out_);
  coordinator_.on_lost(Role::kWorker, 0, "x", now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kFailed);
}

TEST_F(CoordinatorTest, AShardThatIsLostEndsTheRunByName) {
  gather();
  close(0, {0, 1});
  out_ = {};
  coordinator_.on_lost(Role::kShard, 1, "the connection was closed", now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(sent<Farewell>().size(), 5u) << "everybody is told";
  EXPECT_NE(sent<Farewell>()[0].second.reason.find("shard 1 was lost at step 1"),
            std::string::npos);
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kFailed);
}

TEST_F(CoordinatorTest, WithoutItsEvaluatorTheRunStillEnds) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, "x", now_, out_);
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kCompleted);
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

TEST_F(CoordinatorTest, DecidesAgainWhenEnoughHaveArrivedOnAllShards) {
  policy_.choice.review = {.arrivals = 1, .at = kNoTimeLimit};
  policy_.revised = Choice{.cutoff = 1, .at_least = 1, .reason = "closes"};
  gather();
  for (const auto& [to, decision] : sent<Decision>()) EXPECT_EQ(decision.news_every, 1u);
  out_ = {};
  now_ = 7ms;
  tell(Role::kShard, 0, Arrived{.step = 0, .arrivals = {{1, 5ms, 0}}});
  EXPECT_TRUE(policy_.asked_again.empty()) << "the other shard has not got it yet";
  tell(Role::kShard, 1, Arrived{.step = 0, .arrivals = {{1, 6ms, 0}}});
  ASSERT_EQ(policy_.asked_again.size(), 1u);
  EXPECT_DOUBLE_EQ(policy_.asked_again[0].first, 0.007);
  EXPECT_DOUBLE_EQ(policy_.asked_again[0].second[1], 0.006);
  EXPECT_GT(policy_.asked_again[0].second[0], 1e9) << "nobody knows yet when worker 0 comes";
  ASSERT_EQ(sent<Decision>().size(), 2u) << "every shard is told";
  EXPECT_EQ(sent<Decision>()[0].second.cutoff, 1u);
  EXPECT_EQ(sent<Decision>()[0].second.step, 0u);
  ASSERT_EQ(happened<DecisionRecord>().size(), 1u);
  EXPECT_EQ(happened<DecisionRecord>()[0].at, 7ms);
  EXPECT_EQ(happened<DecisionRecord>()[0].reason, "closes");
}

TEST_F(CoordinatorTest, DecidesAgainWhenItsTimeHasCome) {
  policy_.choice.review.at = 0.02;
  gather();
  ASSERT_EQ(coordinator_.wake_at(), now_ + 20ms);
  out_ = {};
  coordinator_.on_time(now_ + 19ms, out_);
  EXPECT_TRUE(policy_.asked_again.empty());
  coordinator_.on_time(now_ + 20ms, out_);
  ASSERT_EQ(policy_.asked_again.size(), 1u);
  EXPECT_TRUE(sent<Decision>().empty()) << "the choice stands";
  EXPECT_FALSE(coordinator_.wake_at()) << "and is not asked about again";
}

TEST_F(CoordinatorTest, NewsOfAnotherStepIsNoReasonToDecideAgain) {
  policy_.choice.review = {.arrivals = 1, .at = kNoTimeLimit};
  gather();
  close(0, {0, 1});
  for (const ShardId shard : {0u, 1u})
    tell(Role::kShard, shard, Arrived{.step = 0, .arrivals = {{1, 6ms, 0}}});
  EXPECT_TRUE(policy_.asked_again.empty());
}

TEST_F(CoordinatorTest, APolicyThatDecidesOnceWantsNoNews) {
  gather();
  for (const auto& [to, decision] : sent<Decision>()) EXPECT_EQ(decision.news_every, 0u);
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
    for (const ShardId shard : {0u, 1u}) tell(Role::kShard, shard, closed);
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
    // Worker 1 takes three times as long for a sample. (Counts of the step before: about right.)
    close_with(step, 0.001 * count(0), 0.003 * count(1));
    if (next.size() < 2) continue;
    EXPECT_EQ(next.at(0).count + next.at(1).count, 200u) << "as many samples as ever";
    EXPECT_EQ(next.at(1).first, next.at(0).count) << "and none twice";
    EXPECT_EQ(next.at(0).total, 200u);
  }
  EXPECT_NEAR(count(0), 150, 8);
  EXPECT_NEAR(count(1), 50, 8);
}

TEST_F(CoordinatorTest, TellsStragglersToStop) {
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

TEST_F(CoordinatorTest, MeasuresWhatAnOrderToStopCosts) {
  gather();
  now_ = 50ms;
  close(0, {0});
  now_ = 57ms;
  tell(Role::kWorker, 1, Abandoned{.step = 0, .resumed = 1, .wasted = 30ms});
  tell(Role::kWorker, 1, Abandoned{.step = 99, .resumed = 100, .wasted = 30ms});
  tell(Role::kWorker, 0, Abandoned{.step = 0, .resumed = 1, .wasted = 30ms});
  ASSERT_EQ(happened<AbandonRecord>().size(), 1u) << "what makes no sense is passed over";
  const AbandonRecord record = happened<AbandonRecord>()[0];
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
    for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, closed);
  }
};

TEST_F(FinishingStragglers, AreNotStoppedAndNotCountedOnUntilTheyHaveCome) {
  gather();
  close(0, {0});
  close(1, {0});
  EXPECT_EQ(stops(), 0u);
  ASSERT_EQ(policy_.alive.size(), 3u);
  EXPECT_EQ(policy_.alive[1], std::vector<WorkerId>{0}) << "worker 1 is busy";
  EXPECT_EQ(happened<DecisionRecord>()[1].alive, 2u) << "it might come all the same";
  EXPECT_EQ(sent<Decision>().back().second.alive, (std::vector<WorkerId>{0, 1}));
  EXPECT_EQ(sent<Decision>().back().second.cutoff, 1u);
  // In step 0 it took longer; in step 1 it took no part.
  EXPECT_EQ(policy_.learned[0].known[1], Known::kLonger);
  EXPECT_EQ(policy_.learned[1].known[1], Known::kNothing);

  close_with_late(2, {0}, 0);
  ASSERT_EQ(policy_.late.size(), 1u);
  EXPECT_EQ(policy_.learned[2].known[1], Known::kNothing) << "it was busy for a part of it";
  EXPECT_EQ(policy_.alive[3], std::vector<WorkerId>{0}) << "now with step 2";
  close_with_late(3, {0, 1}, 2);
  EXPECT_EQ(policy_.late.size(), 1u) << "what it took in step 2 began with what was left of step 0";
  EXPECT_EQ(policy_.learned[3].known[1], Known::kArrived) << "it came in time after all";
  EXPECT_EQ(policy_.alive[4], (std::vector<WorkerId>{0, 1}));

  // Its record says what is known of it in any case.
  for (const Step step : {Step{0}, Step{2}})
    tell(Role::kWorker, 1, StepReport{.step = step, .samples = 3});
  const auto late = happened<ArrivalRecord>();
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[1].step, 2u);
}

TEST_F(FinishingStragglers, AreCountedOnIfThereIsNobodyElse) {
  gather();
  close(0, {0});
  coordinator_.on_lost(Role::kWorker, 0, "x", now_, out_);
  EXPECT_EQ(sent<Decision>().back().second.cutoff, 1u) << "of nobody, one";
  close(1, {});
  EXPECT_EQ(policy_.alive.back(), std::vector<WorkerId>{1});
}

TEST_F(FinishingStragglers, AreForgottenWhenTheyNeverCome) {
  gather();
  for (Step step = 0; step <= StepLedger::kStepsRemembered; ++step) close(step, {0});
  EXPECT_EQ(policy_.alive.back(), std::vector<WorkerId>{0});
  const size_t before = coordinator_.pending();
  for (Step step = StepLedger::kStepsRemembered + 1; step < 199; ++step) close(step, {0});
  EXPECT_LE(coordinator_.pending(), before + 3);
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
    named = named || (event.kind == "refused" && event.peer == "worker 0" &&
                      event.text.find("first in w") != std::string::npos);
  }
  EXPECT_TRUE(named) << "the tensor is named";
}

class EndlessCoordinatorTest : public CoordinatorTest {
 protected:
  EndlessCoordinatorTest() : CoordinatorTest({.workers = 2, .shards = 2, .steps = kEndless}) {}
};

TEST_F(EndlessCoordinatorTest, TellsNoTotalThatNobodyKnows) {
  gather();
  coordinator_.on_interrupt(now_, out_);
  EXPECT_EQ(happened<RunEnd>().at(0).reason, "interrupted at step 0");
}

TEST_F(CoordinatorTest, AnInterruptKeepsWhatThereIs) {
  gather();
  close(0, {0, 1});
  coordinator_.on_interrupt(now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].outcome, RunOutcome::kInterrupted);
  EXPECT_EQ(happened<RunEnd>()[0].reason, "interrupted at step 1 of 3");
  EXPECT_EQ(happened<StepStory>().size(), 1u);
  coordinator_.on_interrupt(now_, out_);
  EXPECT_EQ(happened<RunEnd>().size(), 1u) << "once";
}

TEST_F(CoordinatorTest, LeavesOutWhoDoesNotJoinInTime) {
  for (const Hello& who : {shard(0), shard(1), worker(0), evaluator()})
    ASSERT_TRUE(hello(who).ok());
  for (const uint32_t index : {0u, 1u}) tell(Role::kShard, index, Ready{});
  tell(Role::kWorker, 0, Ready{});
  coordinator_.on_tick(59s, out_);
  EXPECT_TRUE(sent<Decision>().empty());
  coordinator_.on_tick(60s, out_);
  ASSERT_EQ(sent<Decision>().size(), 2u);
  EXPECT_EQ(sent<Decision>()[0].second.alive, std::vector<WorkerId>{0});
  EXPECT_EQ(happened<EventRecord>()[0].peer, "worker 1");
}

TEST_F(CoordinatorTest, AMissingShardIsNamed) {
  ASSERT_TRUE(hello(shard(0)).ok());
  coordinator_.on_tick(61s, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(happened<RunEnd>()[0].reason, "shard 1 did not join within 60 s");
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

}  // namespace
}  // namespace drover

// Membership of a run: joining, leaving, losses, and refused peers.
#include "coordinator/coordinator_fixture.h"

namespace drover {
namespace {

TEST_F(CoordinatorTest, RefusesUnknownIndicesDuplicatesAndOtherModels) {
  gather();
  EXPECT_FALSE(hello(worker(0)).ok());
  EXPECT_FALSE(hello(worker(2)).ok());
  EXPECT_FALSE(hello(shard(2)).ok());
  EXPECT_FALSE(hello(shard(0)).ok());
  EXPECT_FALSE(hello(evaluator()).ok());
}

TEST_F(CoordinatorTest, NamesTheDifferenceOfAModel) {
  ASSERT_TRUE(hello(worker(0)).ok());
  Hello other = worker(1);
  other.tensors.pop_back();
  const Status refused = hello(other);
  ASSERT_FALSE(refused.ok());
  for (const char* value : {"64", "96", " b"})
    EXPECT_NE(refused.error().message.find(value), std::string::npos) << refused.error().message;
  other = worker(1);
  other.tensors[0].rate = 0.5;
  EXPECT_NE(hello(other).error().message.find(" w"), std::string::npos);
}

TEST_F(CoordinatorTest, TheRunIsCompleteWhenTheLastWorkerHasLeft) {
  gather();
  close(0, {0, 1});
  out_ = {};
  receive(Role::kWorker, 1, Farewell{RunOutcome::kCompleted, ""});
  ASSERT_EQ(recorded<EventRecord>().size(), 1u);
  EXPECT_EQ(recorded<EventRecord>()[0].kind(), EventKind::kLeft);
  EXPECT_EQ(sent<Decision>().back().second.alive, std::vector<WorkerId>{0});
  EXPECT_TRUE(recorded<RunEnd>().empty()) << "the other workers continue";
  coordinator_.on_lost(Role::kWorker, 1, disconnected("it is gone"), now_, out_);
  EXPECT_EQ(recorded<EventRecord>().size(), 1u) << "a worker that has left is not lost";
  receive(Role::kWorker, 0, Farewell{RunOutcome::kCompleted, ""});
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

class BroughtModelTest : public CoordinatorTest {
 protected:
  BroughtModelTest()
      : CoordinatorTest(
            {.workers = 2,
             .shards = 2,
             .steps = 3,
             .learning = {.optimizer = {.ema_decay = 0.9}, .schedule = {.rule = RateRule::kSqrt}},
             .workers_bring_model = true,
             .worker_options = {.slow = {{.workers = {{1, 1}}, .factor = 2.0}}},
             .batch = 16,
             .seed = 5}) {}
  Hello learner(uint32_t index, double rate = 0.25) {
    Hello hello = worker(index);
    hello.learning = Learning{.optimizer = {.kind = OptimizerKind::kAdam}, .rate = rate};
    return hello;
  }
};

TEST_F(BroughtModelTest, CombinesTheRulesOfTheFirstWorkerAndOfTheRun) {
  for (const Hello& peer : {shard(0), shard(1), learner(0)}) ASSERT_TRUE(hello(peer).ok());
  const Plan plan = sent<Plan>().at(0).second;
  EXPECT_EQ(plan.learning.optimizer.kind, OptimizerKind::kAdam);
  EXPECT_EQ(plan.learning.optimizer.ema_decay, 0.9);
  EXPECT_EQ(plan.learning.schedule.base, 0.25);
  EXPECT_EQ(plan.learning.schedule.rule, RateRule::kSqrt);
  const Welcome welcome = sent<Welcome>().at(0).second;
  EXPECT_EQ(std::tuple(welcome.workers, welcome.batch, welcome.seed), std::tuple(2u, 16u, 5u));
  EXPECT_EQ(welcome.slow, (std::vector<SlowRule>{{.workers = {{1, 1}}, .factor = 2.0}}));
}

TEST_F(BroughtModelTest, EndsWhenItsWorkersHaveFetchedTheModelAndLeft) {
  for (const Hello& peer : {shard(0), shard(1), learner(0), learner(1), evaluator()})
    ASSERT_TRUE(hello(peer).ok());
  coordinator_.on_lost(Role::kEvaluator, 0, disconnected("there is none"), now_, out_);
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
  for (const uint32_t index : {0u, 1u}) receive(Role::kWorker, index, Ready{});
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  EXPECT_EQ(sent<Farewell>().size(), 2u) << "only to workers: shards stay";
  EXPECT_TRUE(recorded<RunEnd>().empty());
  receive(Role::kWorker, 0, Farewell{RunOutcome::kCompleted, ""});
  EXPECT_TRUE(recorded<RunEnd>().empty());
  const auto patience = coordinator_.wake_at();
  ASSERT_TRUE(patience) << "the wait for a worker that does not leave is bounded";
  now_ = *patience;
  coordinator_.on_time(now_, out_);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(BroughtModelTest, RefusesWorkersWithOtherLearningRules) {
  ASSERT_TRUE(hello(learner(0)).ok());
  const Status other = hello(learner(1, 0.5));
  ASSERT_FALSE(other.ok());
  for (const char* value : {"adam", "0.5"})
    EXPECT_NE(other.error().message.find(value), std::string::npos) << other.error().message;
  EXPECT_FALSE(hello(worker(1)).ok()) << "it brings no learning rules";
  EXPECT_TRUE(hello(learner(1)).ok());
}

// Scripts that decide by themselves when they are done.
class EndlessTest : public CoordinatorTest {
 protected:
  EndlessTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = kEndless,
                         .evaluator = false,
                         .workers_bring_model = true,
                         .checkpoint_every = 100}) {}
  void gather_scripts() {
    for (const uint32_t index : {0u, 1u}) ASSERT_TRUE(hello(shard(index)).ok());
    for (const uint32_t index : {0u, 1u}) {
      Hello script = worker(index);
      script.learning = Learning{};
      ASSERT_TRUE(hello(script).ok());
    }
    for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
    for (const uint32_t index : {0u, 1u}) receive(Role::kWorker, index, Ready{});
  }
  void leave(WorkerId worker, Step made) {
    receive(Role::kWorker, worker, RunLength{.steps = made});
    receive(Role::kWorker, worker, Farewell{RunOutcome::kCompleted, ""});
  }
  void save(Version version) {
    for (const uint32_t shard : {0u, 1u})
      receive(Role::kShard, shard, CheckpointSaved{.version = version, .file = "part"});
    coordinator_.on_checkpoint_kept(version, done(), 1ms, now_, out_);
  }
};

TEST_F(EndlessTest, EndsWithTheVersionThatAllScriptsHaveAndKeepsIt) {
  gather_scripts();
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  leave(0, 3);
  leave(1, 3);
  EXPECT_EQ(sent<RunLength>().back().second.steps, 3u);
  EXPECT_TRUE(recorded<RunEnd>().empty()) << "the last checkpoint is still to come";
  save(3);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(EndlessTest, WaitsForTheNewsOfStepsThatScriptsHaveSeenClosed) {
  gather_scripts();
  report(0, {0, 1});
  leave(0, 1);
  leave(1, 1);
  EXPECT_TRUE(recorded<RunEnd>().empty());
  close(0, {0, 1});
  save(1);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<StepSummary>().size(), 1u);
}

TEST_F(EndlessTest, AScriptThatIsDoneEndsTheRunForTheOthersSoon) {
  gather_scripts();
  report(0, {0, 1});
  close(0, {0, 1});
  leave(0, 1);
  const Step last = sent<RunLength>().back().second.steps;
  EXPECT_GT(last, 1u) << "the other worker may have begun another step";
  EXPECT_LE(last, 3u);
  for (Step step = 1; step < last; ++step) {
    report(step, {1});
    close(step, {1});
  }
  const auto farewells = sent<Farewell>();
  ASSERT_FALSE(farewells.empty());
  EXPECT_EQ(farewells.back().first.index, 1u);
  EXPECT_EQ(farewells.back().second.outcome, RunOutcome::kCompleted);
}

TEST_F(EndlessTest, AScriptCanStopTheRun) {
  gather_scripts();
  receive(Role::kWorker, 1, RunLength{.steps = 0});
  const auto lengths = sent<RunLength>();
  ASSERT_EQ(lengths.size(), 4u) << "shards and workers";
  for (Step step = 0; step < lengths[0].second.steps; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  save(lengths[0].second.steps);
  for (const WorkerId worker : {0u, 1u})
    receive(Role::kWorker, worker, Farewell{RunOutcome::kCompleted, ""});
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
}

TEST_F(CoordinatorTest, AWorkerThatIsLostIsNotWaitedFor) {
  gather();
  out_ = {};
  now_ = 2s;
  coordinator_.on_lost(Role::kWorker, 1, disconnected("the connection was closed"), now_, out_);
  ASSERT_EQ(sent<Decision>().size(), 2u);
  EXPECT_EQ(sent<Decision>()[0].second, (Decision{.step = 0, .cutoff = 1, .alive = {0}}));
  ASSERT_EQ(recorded<EventRecord>().size(), 1u);
  const EventRecord event = recorded<EventRecord>()[0];
  EXPECT_EQ(event.peer, (Peer{Role::kWorker, 1}));
  EXPECT_EQ(event.at, 2s);
  EXPECT_EQ(event.payload,
            EventPayload(event::Lost{.loss = disconnected("the connection was closed"),
                                     .effect = event::LossEffect::kContinues}));
  close(0, {0});
  EXPECT_FALSE(coordinator_.ended());
  EXPECT_EQ(sent<Decision>().back().second, (Decision{.step = 1, .cutoff = 1, .alive = {0}}));
}

TEST_F(CoordinatorTest, AWorkerThatReturnsTakesPartFromTheNextStepOn) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  out_ = {};
  ASSERT_TRUE(hello(worker(1)).ok());
  EXPECT_EQ(sent<Welcome>().size(), 1u);
  EXPECT_EQ(recorded<PeerRecord>().size(), 1u) << "it has a new process";
  close(0, {0});
  EXPECT_EQ(sent<Decision>().back().second.alive, std::vector<WorkerId>{0}) << "not ready yet";
  receive(Role::kWorker, 1, Ready{});
  EXPECT_EQ(sent<Decision>().back().second.step, 1u) << "nothing changes inside a step";
  out_ = {};
  close(1, {0});
  EXPECT_EQ(sent<Decision>().back().second, (Decision{.step = 2, .cutoff = 2, .alive = {0, 1}}));
  ASSERT_EQ(recorded<EventRecord>().size(), 1u);
  EXPECT_EQ(recorded<EventRecord>()[0].kind(), EventKind::kJoined);
  EXPECT_EQ(recorded<EventRecord>()[0].peer, (Peer{Role::kWorker, 1}));
  close(2, {0, 1});
  EXPECT_EQ(policy_.learned[1].contributors, 1u);
  EXPECT_EQ(policy_.learned[2].contributors, 2u);
}

TEST_F(CoordinatorTest, AWorkerLostAgainBeforeItTakesPartChangesNothing) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  ASSERT_TRUE(hello(worker(1)).ok());
  receive(Role::kWorker, 1, Ready{});
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  close(0, {0});
  EXPECT_EQ(sent<Decision>().back().second.alive, std::vector<WorkerId>{0});
  EXPECT_TRUE(hello(worker(1)).ok()) << "it may try again";
}

TEST_F(CoordinatorTest, AdmitsNoWorkerAfterTraining) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  for (Step step = 0; step < 3; ++step) close(step, {0});
  EXPECT_FALSE(hello(worker(1)).ok());
}

class LatecomersTest : public CoordinatorTest {
 protected:
  LatecomersTest()
      : CoordinatorTest({.workers = 4, .workers_at_start = 2, .shards = 2, .steps = 3}) {}
};

TEST_F(LatecomersTest, AreNotWaitedForAndMayJoinLater) {
  gather();
  EXPECT_EQ(sent<Decision>()[0].second.alive, (std::vector<WorkerId>{0, 1}));
  ASSERT_TRUE(hello(worker(3)).ok());
  receive(Role::kWorker, 3, Ready{});
  EXPECT_FALSE(hello(worker(4)).ok()) << "the run has 4 worker indices";
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
                         .worker_options = {.job = "steps = 3"}}) {}
};

TEST_F(JoinersTest, GetTheJobAndAnIndex) {
  gather();
  const auto first = coordinator_.offer_place("there", now_);
  const auto second = coordinator_.offer_place("there", now_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value().job, "steps = 3");
  EXPECT_EQ(first.value().worker, 2u);
  EXPECT_EQ(second.value().worker, 3u);
  const auto third = coordinator_.offer_place("there", now_);
  ASSERT_FALSE(third.ok());
  EXPECT_NE(third.error().message.find("--workers-max"), std::string::npos);
}

TEST_F(JoinersTest, LoseTheirIndexIfTheyDoNotJoinInTime) {
  gather();
  ASSERT_TRUE(coordinator_.offer_place("there", now_).ok());
  ASSERT_TRUE(hello(worker(2)).ok());
  ASSERT_EQ(coordinator_.offer_place("there", now_).value().worker, 3u);
  EXPECT_EQ(coordinator_.offer_place("there", now_ + WorkerRoster::kPlaceKept).value().worker, 3u);
}

TEST_F(JoinersTest, DoNotGetTheIndexOfAWorkerThatMayReturn) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  EXPECT_EQ(coordinator_.offer_place("there", now_).value().worker, 2u);
  ASSERT_TRUE(hello(worker(2)).ok());
  coordinator_.on_lost(Role::kWorker, 2, disconnected("x"), now_, out_);
  EXPECT_EQ(coordinator_.offer_place("there", now_).value().worker, 2u)
      << "the index of a joiner is free again";
}

TEST_F(JoinersTest, OfAHostWithRepeatedLossesAreBackedOffAtAnyIndex) {
  gather();
  const auto joiner = [&](WorkerId index, const std::string& host) {
    Hello hello = worker(index);
    hello.host = host;
    return hello;
  };
  for (uint32_t loss = 0; loss <= Quarantine::kForgiven; ++loss) {
    for (const WorkerId place : {2u, 3u}) ASSERT_TRUE(hello(joiner(place, "flaps")).ok()) << loss;
    now_ += 1s;
    for (const WorkerId place : {2u, 3u})
      coordinator_.on_lost(Role::kWorker, place, disconnected("no route"), now_, out_);
  }
  const auto refused = coordinator_.offer_place("flaps", now_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kNotNow);
  EXPECT_NE(refused.error().message.find("flaps"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(hello(joiner(3, "flaps")).ok());
  EXPECT_TRUE(hello(joiner(3, "there")).ok()) << "a worker of another host may have the same index";
  now_ += Quarantine::kFirst;
  EXPECT_TRUE(coordinator_.offer_place("flaps", now_).ok());
  EXPECT_TRUE(hello(joiner(2, "flaps")).ok());
}

TEST_F(JoinersTest, AreRefusedAfterTraining) {
  gather();
  for (Step step = 0; step < 3; ++step) close(step, {0, 1});
  EXPECT_FALSE(coordinator_.offer_place("there", now_).ok());
}

TEST_F(LatecomersTest, NeedARunWithAJobFile) {
  gather();
  EXPECT_FALSE(coordinator_.offer_place("there", now_).ok());
}

class IndispensableTest : public CoordinatorTest {
 protected:
  IndispensableTest()
      : CoordinatorTest({.workers = 3,
                         .workers_at_start = 2,
                         .shards = 2,
                         .steps = 1,
                         .worker_options = {.job = "steps = 1"},
                         .workers_indispensable = true}) {}
};

TEST_F(IndispensableTest, ALostWorkerEndsTheRunAndTheReasonNamesTheRemedy) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("killed"), now_, out_);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kFailed);
  EXPECT_EQ(recorded<RunEnd>()[0].cause, EndCause::kRankLost);
  EXPECT_NE(recorded<RunEnd>()[0].reason.find("worker 1"), std::string::npos);
  EXPECT_NE(recorded<RunEnd>()[0].reason.find("--resume"), std::string::npos);
}

TEST_F(IndispensableTest, LaterAndDismissedWorkersMayBeLost) {
  gather();
  ASSERT_TRUE(hello(worker(2)).ok());
  coordinator_.on_lost(Role::kWorker, 2, disconnected("killed"), now_, out_);
  EXPECT_FALSE(coordinator_.ended());
  close(0, {0, 1});
  coordinator_.on_lost(Role::kWorker, 1, disconnected("it has left"), now_, out_);
  for (const RunEnd& end : recorded<RunEnd>()) EXPECT_EQ(end.outcome, RunOutcome::kCompleted);
}

TEST_F(CoordinatorTest, ThePolicyLearnsNothingOfALostWorker) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  close(0, {0});
  ASSERT_EQ(policy_.learned.size(), 1u);
  EXPECT_EQ(policy_.learned[0].known, (std::vector<Known>{Known::kArrived, Known::kNothing}));
}

TEST_F(CoordinatorTest, ARunWithoutWorkersEnds) {
  gather();
  coordinator_.on_lost(Role::kWorker, 1, disconnected("x"), now_, out_);
  coordinator_.on_lost(Role::kWorker, 0, disconnected("x"), now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kFailed);
}

TEST_F(CoordinatorTest, ALostShardEndsTheRunAndIsNamed) {
  gather();
  close(0, {0, 1});
  out_ = {};
  coordinator_.on_lost(Role::kShard, 1, disconnected("the connection was closed"), now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(sent<Farewell>().size(), 5u) << "to all processes";
  EXPECT_NE(sent<Farewell>()[0].second.reason.find("shard 1"), std::string::npos);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kFailed);
  EXPECT_EQ(recorded<RunEnd>()[0].cause, EndCause::kServerLost);
}

TEST_F(CoordinatorTest, WithoutItsEvaluatorTheRunStillEnds) {
  gather();
  coordinator_.on_lost(Role::kEvaluator, 0, disconnected("x"), now_, out_);
  for (Step step = 0; step < 3; ++step) {
    report(step, {0, 1});
    close(step, {0, 1});
  }
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(CoordinatorTest, BeginsWithoutWorkersThatDoNotJoinInTime) {
  for (const Hello& peer : {shard(0), shard(1), worker(0), evaluator()})
    ASSERT_TRUE(hello(peer).ok());
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
  receive(Role::kWorker, 0, Ready{});
  coordinator_.on_tick(59s, out_);
  EXPECT_TRUE(sent<Decision>().empty());
  coordinator_.on_tick(60s, out_);
  ASSERT_EQ(sent<Decision>().size(), 2u);
  EXPECT_EQ(sent<Decision>()[0].second.alive, std::vector<WorkerId>{0});
  EXPECT_EQ(recorded<EventRecord>()[0].peer, (Peer{Role::kWorker, 1}));
  EXPECT_EQ(recorded<EventRecord>()[0].as<event::Lost>()->loss,
            (Loss{.cause = LossCause::kJoinTimeout, .waited = 60s}));
}

TEST_F(CoordinatorTest, AMissingShardIsNamed) {
  ASSERT_TRUE(hello(shard(0)).ok());
  coordinator_.on_tick(61s, out_);
  ASSERT_TRUE(coordinator_.ended());
  EXPECT_EQ(recorded<RunEnd>()[0].cause, EndCause::kJoinTimeout);
  for (const char* value : {"shard 1", "2 of 2 workers", "60 s"})
    EXPECT_NE(recorded<RunEnd>()[0].reason.find(value), std::string::npos) << value;
}

}  // namespace
}  // namespace drover

// Restarts of a run after losses, and the return of lost processes.
#include "coordinator/coordinator_fixture.h"

namespace drover {
namespace {

class RecoveringTest : public CoordinatorTest {
 protected:
  RecoveringTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 3,
                         .checkpoint_dir = "somewhere",
                         .recovers = true,
                         .before = 7s}) {}

  void lose(Role role, uint32_t index) {
    coordinator_.on_lost(role, index, disconnected("gone"), now_, out_);
  }

  void finish_steps() {
    for (Step step = 0; step < 3; ++step) {
      report(step, {0, 1});
      close(step, {0, 1});
    }
  }

  void expect_restart(event::RestartCause cause, const std::optional<Peer>& lost, Step step) {
    EXPECT_TRUE(coordinator_.ended());
    EXPECT_TRUE(coordinator_.restarts());
    EXPECT_TRUE(recorded<RunEnd>().empty()) << "the run itself has not ended";
    const auto events = recorded<EventRecord>();
    ASSERT_FALSE(events.empty());
    ASSERT_EQ(events.back().kind(), EventKind::kRestarted);
    EXPECT_EQ(events.back().as<event::Restarted>()->cause, cause);
    EXPECT_EQ(events.back().peer, lost);
    EXPECT_EQ(events.back().step, step);
  }
};

TEST_F(RecoveringTest, ALostShardMakesAllProcessesJoinAgain) {
  gather();
  close(0, {0, 1});
  out_ = {};
  lose(Role::kShard, 1);
  expect_restart(event::RestartCause::kServerLost, Peer{Role::kShard, 1}, 1);
  const auto farewells = sent<Farewell>();
  EXPECT_EQ(farewells.size(), 5u);  // one is addressed to the lost shard, which it does not reach
  for (const auto& [to, farewell] : farewells) EXPECT_TRUE(farewell.rejoin);
}

TEST_F(RecoveringTest, AShardMayBeLostBeforeTheRunHasBegun) {
  ASSERT_TRUE(hello(shard(0)).ok());
  lose(Role::kShard, 0);
  expect_restart(event::RestartCause::kServerLost, Peer{Role::kShard, 0}, 0);
}

TEST_F(RecoveringTest, OnlyTheLossOfTheLastWorkerRestartsTheRun) {
  gather();
  lose(Role::kWorker, 0);
  EXPECT_FALSE(coordinator_.ended());
  lose(Role::kWorker, 1);
  expect_restart(event::RestartCause::kWorkersLost, {}, 0);
}

TEST_F(RecoveringTest, TimeContinuesAcrossIncarnations) {
  gather();
  now_ += 1s;
  lose(Role::kShard, 0);
  EXPECT_EQ(recorded<EventRecord>().back().at, 8s);
}

TEST_F(RecoveringTest, ALostEvaluatorMayReturn) {
  gather();
  EXPECT_EQ(hello(evaluator()).error().kind, ErrorKind::kNotNow)
      << "its earlier incarnation is connected";
  lose(Role::kEvaluator, 0);
  out_ = {};
  ASSERT_TRUE(hello(evaluator()).ok());
  EXPECT_EQ(sent<Welcome>().size(), 1u);
  finish_steps();
  EXPECT_FALSE(coordinator_.ended()) << "the final parameters are still to be evaluated";
  receive(Role::kEvaluator, 0, Evaluated{.version = 3});
  EXPECT_EQ(recorded<RunEnd>().size(), 1u);
}

TEST_F(RecoveringTest, TheWaitForAnEvaluatorLostAtTheEndIsBounded) {
  gather();
  finish_steps();
  now_ += 1s;
  lose(Role::kEvaluator, 0);
  EXPECT_FALSE(coordinator_.ended());
  const auto patience = coordinator_.wake_at();
  ASSERT_TRUE(patience);
  EXPECT_GT(*patience, now_);
  coordinator_.on_time(*patience, out_);
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kCompleted);
}

TEST_F(RecoveringTest, AShardWithAConnectedEarlierIncarnationMayTryAgain) {
  gather();
  EXPECT_EQ(hello(shard(1)).error().kind, ErrorKind::kNotNow);
}

TEST_F(RecoveringTest, WorkersStayUntilTheRunHasEnded) {
  gather();
  finish_steps();
  EXPECT_TRUE(sent<Farewell>().empty()) << "they are needed if the run restarts";
  lose(Role::kShard, 0);
  expect_restart(event::RestartCause::kServerLost, Peer{Role::kShard, 0}, 3);
  for (const auto& [to, farewell] : sent<Farewell>()) EXPECT_TRUE(farewell.rejoin);
}

TEST_F(RecoveringTest, ARunThatNoWorkerJoinsEnds) {
  for (const Hello& peer : {shard(0), shard(1)}) ASSERT_TRUE(hello(peer).ok());
  now_ += 10min;
  coordinator_.on_tick(now_, out_);
  EXPECT_FALSE(coordinator_.restarts());
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kFailed);
}

class ComingBackTest : public CoordinatorTest {
 protected:
  ComingBackTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 3,
                         .recovers = true,
                         .join_timeout = 60s,
                         .return_timeout = 15s}) {}
};

TEST_F(ComingBackTest, WaitsLessForReturningWorkersThanAtTheStart) {
  for (const Hello& peer : {shard(0), shard(1), worker(0), evaluator()})
    ASSERT_TRUE(hello(peer).ok());
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
  now_ += 15s;
  coordinator_.on_tick(now_, out_);
  EXPECT_TRUE(coordinator_.members().has(1)) << "no worker has returned yet";
  receive(Role::kWorker, 0, Ready{});
  coordinator_.on_tick(now_, out_);
  now_ += 15s;
  coordinator_.on_tick(now_, out_);
  EXPECT_FALSE(coordinator_.members().has(1));
  EXPECT_EQ(sent<Decision>().size(), 2u) << "the run continues without it";
  EXPECT_TRUE(hello(worker(1)).ok()) << "it may still join";
}

TEST_F(ComingBackTest, AWorkerThatIsAlmostReadyMayTryAgain) {
  for (const Hello& peer : {shard(0), shard(1), worker(0), worker(1), evaluator()})
    ASSERT_TRUE(hello(peer).ok());
  now_ += 20s;  // shards had much to read
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
  receive(Role::kWorker, 0, Ready{});
  coordinator_.on_tick(now_, out_);
  EXPECT_TRUE(coordinator_.members().has(1)) << "the timeout begins when the first worker is ready";
  now_ += 15s;
  coordinator_.on_tick(now_, out_);
  EXPECT_FALSE(coordinator_.members().has(1));
  ASSERT_EQ(sent<Farewell>().size(), 1u);
  EXPECT_TRUE(sent<Farewell>()[0].second.rejoin) << "it may still join";
}

// Worker 0 is the worker of the start and does not return. Worker 1 joins later and is ready.
class LaterWorkerTest : public CoordinatorTest {
 protected:
  LaterWorkerTest()
      : CoordinatorTest({.workers = 2,
                         .workers_at_start = 1,
                         .shards = 2,
                         .steps = 3,
                         .recovers = true,
                         .return_timeout = 15s}) {}
};

TEST_F(LaterWorkerTest, ContinuesTheRunIfTheWorkersOfTheStartDoNotReturn) {
  for (const Hello& peer : {shard(0), shard(1), worker(1), evaluator()})
    ASSERT_TRUE(hello(peer).ok());
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
  receive(Role::kWorker, 1, Ready{});
  coordinator_.on_tick(now_, out_);
  now_ += 15s;
  coordinator_.on_tick(now_, out_);
  EXPECT_FALSE(coordinator_.ended()) << "it would restart forever";
  EXPECT_EQ(coordinator_.members().list(), std::vector<WorkerId>{1});
  EXPECT_EQ(sent<Decision>().size(), 2u);
}

class ReadingTest : public CoordinatorTest {
 protected:
  ReadingTest()
      : CoordinatorTest({.workers = 2,
                         .shards = 2,
                         .steps = 3,
                         .resume = ResumeFrom{.step = 1,
                                              .folder = "x",
                                              .tensors = {{"w", 64, {}}, {"b", 32, {}}},
                                              .settings = {},
                                              .noise = {}},
                         .join_timeout = 60s}) {}
};

TEST_F(ReadingTest, ShardsMayReadForLongerThanTheJoinTimeout) {
  for (const Hello& peer : {shard(0), shard(1), worker(0), worker(1), evaluator()})
    ASSERT_TRUE(hello(peer).ok());
  now_ += 5min;
  coordinator_.on_tick(now_, out_);
  EXPECT_FALSE(coordinator_.ended());
  for (const uint32_t index : {0u, 1u}) receive(Role::kShard, index, Ready{});
  coordinator_.on_tick(now_, out_);
  now_ += 59s;
  coordinator_.on_tick(now_, out_);
  EXPECT_FALSE(coordinator_.ended()) << "workers could not be ready before the shards were";
  for (const uint32_t index : {0u, 1u}) receive(Role::kWorker, index, Ready{});
  EXPECT_EQ(sent<Decision>().size(), 2u);
}

TEST_F(ReadingTest, TheTimeToReadIsBounded) {
  for (const Hello& peer : {shard(0), shard(1), worker(0)}) ASSERT_TRUE(hello(peer).ok());
  now_ += Gathering::kReadingMax;
  coordinator_.on_tick(now_, out_);
  EXPECT_TRUE(coordinator_.ended());
}

TEST_F(RecoveringTest, AnInterruptEndsARestartingRun) {
  gather();
  close(0, {0, 1});
  lose(Role::kShard, 0);
  ASSERT_TRUE(coordinator_.restarts());
  coordinator_.on_interrupt(now_, out_);
  EXPECT_FALSE(coordinator_.restarts());
  ASSERT_EQ(recorded<RunEnd>().size(), 1u);
  EXPECT_EQ(recorded<RunEnd>()[0].outcome, RunOutcome::kInterrupted);
}

TEST_F(RecoveringTest, AProcessThatJoinsDuringARestartMayTryAgain) {
  gather();
  lose(Role::kShard, 0);
  const Status refused = hello(shard(0));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kNotNow);
}

TEST_F(RecoveringTest, IgnoresLossesAfterTheEnd) {
  gather();
  coordinator_.on_interrupt(now_, out_);
  ASSERT_TRUE(coordinator_.ended());
  lose(Role::kShard, 0);
  EXPECT_FALSE(coordinator_.restarts());
}

TEST_F(CoordinatorTest, AWorkerWithRepeatedLossesIsBackedOff) {
  gather();
  for (uint32_t loss = 1; loss <= Quarantine::kForgiven; ++loss) {
    coordinator_.on_lost(Role::kWorker, 1, disconnected("gone"), now_, out_);
    now_ += 1s;
    ASSERT_TRUE(hello(worker(1)).ok()) << loss;
  }
  out_ = {};
  coordinator_.on_lost(Role::kWorker, 1, disconnected("gone"), now_, out_);
  ASSERT_EQ(recorded<EventRecord>().front().kind(), EventKind::kBackedOff);
  EXPECT_EQ(*recorded<EventRecord>().front().as<event::BackedOff>(),
            (event::BackedOff{.losses = Quarantine::kForgiven + 1, .wait = Quarantine::kFirst}));
  const Status refused = hello(worker(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kNotNow) << "it may try again";
  now_ += Quarantine::kFirst;
  EXPECT_TRUE(hello(worker(1)).ok());
}

TEST_F(CoordinatorTest, AWorkerWithAConnectedEarlierIncarnationMayTryAgain) {
  gather();
  const Status refused = hello(worker(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kNotNow);
}

}  // namespace
}  // namespace drover

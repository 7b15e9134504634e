// A supervised run continues when one of its processes is killed, and has the parameters of a run
// without faults. In each run step 5 takes three seconds, and a process is killed in it; progress
// is printed every two seconds. The newest checkpoint may vary, but the parameters must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

constexpr Step kSlowStep = 5;
constexpr Step kSteps = 9;

Words supervised_job() {
  return small_job() + Words{"--workers",
                             "3",
                             "--shards",
                             "2",
                             "--steps",
                             "9",
                             "--batch",
                             "4",
                             "--optimizer",
                             "adamw",
                             "--ema",
                             "0.9",
                             "--deterministic",
                             "--slow",
                             "delay=20ms",
                             "--slow",
                             "worker=1,steps=5,delay=3s",
                             "--supervise",
                             "--checkpoint",
                             "kept",
                             "--checkpoint-every",
                             "2"};
}

std::vector<EventRecord> events_of(const RunReader& reader, EventKind kind) {
  std::vector<EventRecord> events = reader.events().value();
  std::erase_if(events, [&](const EventRecord& event) { return event.kind() != kind; });
  return events;
}

uint64_t digest_of(const RunReader& reader) { return reader.end().value().parameters_digest; }

// Kills these processes when the slow step has begun.
void kill_in_step(Step step, const std::vector<std::string>& victims, DroverRun& run) {
  run.wait_for_step(step);
  const auto processes = run.find_processes();
  for (const std::string& victim : victims) {
    ASSERT_TRUE(processes.contains(victim)) << victim << "\n" << run.err();
    ::kill(processes.at(victim), SIGKILL);
  }
}

void expect_completes(DroverRun& run) {
  EXPECT_EQ(run.process().wait(kRunPatience).value(), (Ending{0, std::nullopt})) << run.err();
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
  const std::vector<StepRecord> steps = reader.steps().value();
  ASSERT_EQ(steps.size(), kSteps) << run.err();
  Duration before{};
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, i);
    EXPECT_GE(steps[i].at, before) << "times increase";
    before = steps[i].at;
  }
  EXPECT_GE(reader.end().value().elapsed, steps.back().at - steps.front().at);
  ASSERT_FALSE(reader.evaluations().value().empty());
  EXPECT_EQ(reader.evaluations().value().back().version, kSteps);
}

void run_and_kill(const std::vector<std::string>& victims, DroverRun& run) {
  ASSERT_NO_FATAL_FAILURE(kill_in_step(kSlowStep, victims, run));
  expect_completes(run);
}

uint64_t undisturbed_digest() {
  static const uint64_t digest = [] {
    DroverRun run(supervised_job());
    EXPECT_EQ(run.process().wait(kRunPatience).value(), (Ending{0, std::nullopt})) << run.err();
    EXPECT_TRUE(events_of(run.reader(), EventKind::kRestarted).empty());
    return digest_of(run.reader());
  }();
  return digest;
}

TEST(Recovery, AKilledShardIsRestartedAndOnlyTimeIsLost) {
  DroverRun run(supervised_job());
  run_and_kill({"shard 1"}, run);
  const RunReader reader = run.reader();
  const auto events = events_of(reader, EventKind::kRestarted);
  ASSERT_EQ(events.size(), 1U) << run.err();
  EXPECT_EQ(events[0].peer, (Peer{Role::kShard, 1}));
  EXPECT_EQ(events[0].as<event::Restarted>()->cause, event::RestartCause::kServerLost);
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

TEST(Recovery, AKilledCoordinatorIsRestartedAndOnlyTimeIsLost) {
  DroverRun run(supervised_job());
  run_and_kill({"coordinator"}, run);
  const RunReader reader = run.reader();
  const auto events = events_of(reader, EventKind::kRestarted);
  ASSERT_EQ(events.size(), 1U) << run.err();
  EXPECT_EQ(events[0].as<event::Restarted>()->cause, event::RestartCause::kCoordinatorLost);
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

TEST(Recovery, AllProcessesExceptTheLauncherMayBeKilledAtOnce) {
  DroverRun run(supervised_job());
  run_and_kill(
      {"coordinator", "shard 0", "shard 1", "worker 0", "worker 1", "worker 2", "evaluator"}, run);
  EXPECT_EQ(digest_of(run.reader()), undisturbed_digest());
}

TEST(Recovery, AKilledWorkerIsRestartedWhileTheOthersContinue) {
  DroverRun run(supervised_job() + Words{"--slow", "worker=0,steps=6-8,delay=1s"});
  run_and_kill({"worker 1"}, run);
  const RunReader reader = run.reader();
  EXPECT_TRUE(events_of(reader, EventKind::kRestarted).empty());
  EXPECT_EQ(reader.steps().value().back().contributors, 3U) << run.err();
}

// Its connections stay open, so only missing heartbeats show the fault. It is admitted again when
// it wakes.
TEST(Recovery, AStoppedWorkerTimesOutAndRejoinsWhenItWakes) {
  DroverRun run(small_job() + Words{"--workers", "2", "--shards", "1", "--steps", "1000000",
                                    "--batch", "4", "--slow", "delay=20ms", "--slow",
                                    "worker=0,steps=5,delay=3s"});
  run.wait_for_step(kSlowStep);
  const auto processes = run.find_processes();
  ::kill(processes.at("worker 1"), SIGSTOP);
  // The events of worker 1 in order: whether it was lost, and whether it joined after that. The run
  // file is read whenever output is printed.
  const auto has = [&](bool joined) {
    const auto events = run.reader().events().value();
    const auto is = [](EventKind kind) {
      return [kind](const EventRecord& event) {
        return event.kind() == kind && event.peer == Peer{Role::kWorker, 1};
      };
    };
    const auto lost = std::find_if(events.begin(), events.end(), is(EventKind::kLost));
    if (lost == events.end() || !joined) return lost != events.end();
    EXPECT_EQ(lost->as<event::Lost>()->loss.cause, LossCause::kDisconnected);
    return std::any_of(lost, events.end(), is(EventKind::kJoined));
  };
  auto line =
      run.process().wait_for_line([&](std::string_view) { return has(false); }, kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  ::kill(processes.at("worker 1"), SIGCONT);
  line = run.process().wait_for_line([&](std::string_view) { return has(true); }, kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  run.process().signal(SIGINT);
  EXPECT_EQ(run.process().wait(kRunPatience).value(), (Ending{130, std::nullopt})) << run.err();
}

Words job_without_checkpoints() {
  Words words = supervised_job();
  const auto kept = std::find(words.begin(), words.end(), "--checkpoint");
  words.erase(kept, kept + 4);
  return words;
}

TEST(Recovery, WithoutCheckpointsARunRestartsFromTheBeginning) {
  DroverRun run(job_without_checkpoints());
  run_and_kill({"shard 0"}, run);
  EXPECT_EQ(digest_of(run.reader()), undisturbed_digest());
}

// There is no checkpoint: steps that are not kept in memory are lost.
Words job_with_standbys() {
  return job_without_checkpoints() + Words{"--standby", "--slow", "worker=1,steps=7,delay=3s"};
}

void expect_resumed_after(const RunReader& reader, const std::vector<Step>& steps) {
  const auto events = events_of(reader, EventKind::kResumed);
  ASSERT_EQ(events.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(*events[i].as<event::Resumed>(),
              (event::Resumed{.version = steps[i], .from_memory = true}));
}

TEST(Recovery, AStandbyTakesOverAndNoStepIsLost) {
  DroverRun run(job_with_standbys());
  run_and_kill({"shard 1"}, run);
  const RunReader reader = run.reader();
  expect_resumed_after(reader, {5});
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

TEST(Recovery, ARestartedShardBecomesTheStandby) {
  DroverRun run(job_with_standbys());
  ASSERT_NO_FATAL_FAILURE(kill_in_step(kSlowStep, {"shard 1"}, run));
  ASSERT_NO_FATAL_FAILURE(kill_in_step(7, {"standby 1"}, run));
  expect_completes(run);
  const RunReader reader = run.reader();
  expect_resumed_after(reader, {5, 7});
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

TEST(Recovery, AllShardsMayBeKilledIfTheirStandbysLive) {
  DroverRun run(job_with_standbys() + Words{"--transport", "tcp"});
  run_and_kill({"shard 0", "shard 1"}, run);
  const RunReader reader = run.reader();
  expect_resumed_after(reader, {5});
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

TEST(Recovery, AKilledStandbyDoesNotInterruptTheRun) {
  DroverRun run(job_with_standbys());
  run_and_kill({"standby 0"}, run);
  const RunReader reader = run.reader();
  EXPECT_TRUE(events_of(reader, EventKind::kRestarted).empty());
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

TEST(Recovery, StepsThatNoProcessKeepsAreRepeated) {
  DroverRun run(job_with_standbys());
  run_and_kill({"shard 0", "standby 0"}, run);
  const RunReader reader = run.reader();
  EXPECT_EQ(events_of(reader, EventKind::kRestarted).size(), 2U)
      << "once without result, and once from the beginning";
  EXPECT_EQ(digest_of(reader), undisturbed_digest());
}

}  // namespace
}  // namespace drover::testing_support

// A run in which a process is killed, or which is interrupted by Ctrl-C. Each run hangs in step 3,
// where worker 1 takes ten minutes. So the fault happens within a step, and the tests do not depend
// on the speed of the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "support/drover_run.h"

namespace drover::testing_support {
namespace {

using ::testing::Not;

constexpr Step kStuckStep = 3;
constexpr Step kSteps = 8;

Words stuck_job() {
  return small_job() + Words{"--workers", "3",          "--shards", "2",
                             "--steps",   "8",          "--batch",  "4",
                             "--slow",    "delay=20ms", "--slow",   "worker=1,steps=3,delay=600s"};
}

Ending exited(int code) { return {code, std::nullopt}; }

std::vector<EventRecord> events_of(const RunReader& reader, EventKind kind, const Peer& peer) {
  std::vector<EventRecord> events = reader.events().value();
  std::erase_if(
      events, [&](const EventRecord& event) { return event.kind() != kind || event.peer != peer; });
  return events;
}

// Checks what holds for all run files: steps from 0 on without a gap, each with its arrivals.
void expect_consistent(const RunReader& reader) {
  const std::vector<StepRecord> steps = reader.steps().value();
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].step, i);
  for (const StepRecord& step : steps) {
    EXPECT_EQ(reader.arrivals(step.step, step.step + 1).value().size(), 3U) << step.step;
  }
}

TEST(Faults, AWorkerKilledWithinAStepIsDroppedAndTheRunCompletes) {
  // The last step takes a second, so that the launcher can report how the worker ended.
  DroverRun run(stuck_job() + Words{"--slow", "worker=0,steps=7,delay=1s"});
  run.wait_for_step(kStuckStep);
  const auto processes = run.find_processes();
  ASSERT_TRUE(processes.contains("worker 1")) << run.err();
  ::kill(processes.at("worker 1"), SIGKILL);

  EXPECT_EQ(run.process().wait(kRunPatience).value(), exited(0)) << run.err();
  EXPECT_THAT(run.err(), mentions("worker 1"));
  run.expect_nothing_left(/*killed=*/false);

  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
  const std::vector<StepRecord> steps = reader.steps().value();
  ASSERT_EQ(steps.size(), kSteps);
  for (const StepRecord& step : steps) {
    EXPECT_EQ(step.contributors, step.step < kStuckStep ? 3U : 2U) << "step " << step.step;
  }
  const auto lost = events_of(reader, EventKind::kLost, {Role::kWorker, 1});
  ASSERT_EQ(lost.size(), 1U);
  // A shard may see it first, and close the step before the coordinator knows.
  EXPECT_GE(lost[0].step, kStuckStep);
  EXPECT_LE(lost[0].step, kStuckStep + 1);
  EXPECT_GT(lost[0].at, Duration::zero());
  EXPECT_EQ(lost[0].as<event::Lost>()->effect, event::LossEffect::kContinues);
  const auto exits = events_of(reader, EventKind::kExited, {Role::kWorker, 1});
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].as<event::Exited>()->exit, (ProcessExit{.by_signal = true, .number = 9}));
  ASSERT_EQ(reader.evaluations().value().size(), 1U);
  EXPECT_EQ(reader.evaluations().value()[0].version, kSteps);
}

TEST(Faults, AllWorkersKilledEndTheRunAndTheReasonNamesTheLast) {
  DroverRun run(stuck_job());
  run.wait_for_step(kStuckStep);
  const auto processes = run.find_processes();
  for (const char* worker : {"worker 0", "worker 1", "worker 2"}) {
    ::kill(processes.at(worker), SIGKILL);
  }
  EXPECT_TRUE(run.all_processes_end());
  EXPECT_EQ(run.process().wait().value(), exited(1));
  run.expect_nothing_left(/*killed=*/false);
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(reader.end().value().cause, EndCause::kWorkersLost);
  for (WorkerId worker = 0; worker < 3; ++worker) {
    EXPECT_EQ(events_of(reader, EventKind::kLost, {Role::kWorker, worker}).size(), 1U) << worker;
  }
}

TEST(Faults, AKilledShardEndsTheRunAndAllProcesses) {
  DroverRun run(stuck_job());
  run.wait_for_step(kStuckStep);
  const auto processes = run.find_processes();
  ASSERT_TRUE(processes.contains("shard 0")) << run.err();
  ::kill(processes.at("shard 0"), SIGKILL);

  EXPECT_TRUE(run.all_processes_end());
  EXPECT_EQ(run.process().wait().value(), exited(1));
  EXPECT_THAT(run.err(), mentions("shard 0"));
  run.expect_nothing_left(/*killed=*/false);
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(reader.end().value().cause, EndCause::kServerLost);
  EXPECT_THAT(reader.end().value().reason, mentions("shard 0"));
  EXPECT_GE(reader.steps().value().size(), kStuckStep);
  expect_consistent(reader);
}

TEST(Faults, AKilledCoordinatorEndsTheRunAndAllProcesses) {
  DroverRun run(stuck_job());
  run.wait_for_step(kStuckStep);
  const auto processes = run.find_processes();
  ASSERT_TRUE(processes.contains("coordinator")) << run.err();
  ::kill(processes.at("coordinator"), SIGKILL);

  EXPECT_TRUE(run.all_processes_end());
  EXPECT_EQ(run.process().wait().value(), exited(1));
  EXPECT_THAT(run.err(), mentions("coordinator", 9));
  run.expect_nothing_left(/*killed=*/true);
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kRunning);
  expect_consistent(reader);
}

TEST(Faults, AKilledLauncherEndsTheRunAndAllProcesses) {
  DroverRun run(stuck_job());
  run.wait_for_step(kStuckStep);
  run.find_processes();
  run.process().signal(SIGKILL);

  EXPECT_TRUE(run.all_processes_end());
  EXPECT_EQ(run.process().wait().value(), (Ending{std::nullopt, SIGKILL}));
  EXPECT_THAT(run.err(), mentions("launcher"));
  // The coordinator has time to close the file: no side files.
  run.expect_nothing_left(/*killed=*/false);
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(reader.end().value().cause, EndCause::kLauncherLost);
  EXPECT_GE(reader.steps().value().size(), kStuckStep);
  expect_consistent(reader);
}

TEST(Faults, AKilledEvaluatorDoesNotEndTheRun) {
  DroverRun run(stuck_job());
  run.wait_for_step(kStuckStep);
  const auto processes = run.find_processes();
  ASSERT_TRUE(processes.contains("evaluator")) << run.err();
  ::kill(processes.at("evaluator"), SIGKILL);
  const auto line = run.process().wait_for_line("evaluator", kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  ::kill(processes.at("worker 1"), SIGKILL);  // the run continues

  EXPECT_EQ(run.process().wait(kRunPatience).value(), exited(0)) << run.err();
  run.expect_nothing_left(/*killed=*/false);
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
  EXPECT_EQ(reader.steps().value().size(), kSteps);
  EXPECT_EQ(reader.evaluations().value().size(), 0U);
  EXPECT_EQ(events_of(reader, EventKind::kLost, {Role::kEvaluator, 0}).size(), 1U);
}

TEST(Faults, AKilledEvaluatorKeepsTheOldModelAndReportsThatThereIsNoNewOne) {
  const TemporaryFolder models;
  const std::string model = models.file("model.pt");
  std::ofstream(model) << "of last week";
  DroverRun run(stuck_job() + Words{"--save-model", model});
  run.wait_for_step(kStuckStep);
  const auto processes = run.find_processes();
  ::kill(processes.at("evaluator"), SIGKILL);
  const auto line = run.process().wait_for_line("evaluator", kRunPatience);
  ASSERT_TRUE(line.ok()) << line.error().message;
  ::kill(processes.at("worker 1"), SIGKILL);  // the run continues

  EXPECT_EQ(run.process().wait(kRunPatience).value(), exited(1)) << run.err();
  EXPECT_THAT(run.err(), mentions(model));
  EXPECT_THAT(run.out(), Not(mentions(model)));
  EXPECT_EQ(content_of(model), "of last week");
  EXPECT_EQ(run.reader().end().value().outcome, RunOutcome::kCompleted);
}

// --- Ctrl-C

void expect_interrupted(DroverRun& run) {
  EXPECT_TRUE(run.all_processes_end());
  EXPECT_EQ(run.process().wait().value(), exited(130));
  EXPECT_THAT(run.err(), mentions(kStuckStep, kSteps));
  EXPECT_THAT(run.out(), mentions("interrupted"));
  run.expect_nothing_left(/*killed=*/false);
  const RunReader reader = run.reader();
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kInterrupted);
  EXPECT_EQ(reader.end().value().cause, EndCause::kInterrupted);
  const auto events = reader.events().value();
  for (const EventRecord& event : events) EXPECT_NE(event.kind(), EventKind::kLost);
  EXPECT_GE(reader.steps().value().size(), kStuckStep);
  expect_consistent(reader);
}

TEST(CtrlC, EndsTheRunAndKeepsItsSteps) {
  // SIGTERM: timeout, scancel and others send it to all processes at once.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    DroverRun run(stuck_job());
    run.wait_for_step(kStuckStep);
    run.find_processes();
    run.process().signal_group(number);
    expect_interrupted(run);
  }
}

TEST(CtrlC, ToTheLauncherAloneDoesTheSame) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    DroverRun run(stuck_job());
    run.wait_for_step(kStuckStep);
    run.find_processes();
    run.process().signal(number);
    expect_interrupted(run);
  }
}

TEST(CtrlC, BeforeAnyProcessHasJoinedStillEndsTheRun) {
  // The signal arrives at an unknown time between fork and first step. No process must remain.
  DroverRun run(stuck_job());
  ASSERT_TRUE(run.process().wait_for_line("run.db", kRunPatience).ok());
  run.process().signal_group(SIGINT);
  run.find_processes();
  EXPECT_TRUE(run.all_processes_end());
  const Ending ending = run.process().wait().value();
  EXPECT_TRUE(ending == exited(130) || ending == (Ending{std::nullopt, SIGINT})) << to_text(ending);
  for (const auto& [name, pid] : run.find_processes()) EXPECT_TRUE(process_gone(pid)) << name;
}

}  // namespace
}  // namespace drover::testing_support

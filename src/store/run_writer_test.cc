// A run file has all records. A writer never overwrites a file, and reports failures.
#include "store/run_writer.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "core/event_samples.h"
#include "core/test_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string content_of(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return {};
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(RunWriter, ARestartKeepsEarlierStepsAndAllEvents) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  {
    const auto writer = writer_at(path);
    for (Step step = 0; step < 6; ++step) {
      DROVER_EXPECT_OK(writer->on_decision({step, 2, 2, "all", 0ms, 0ms}));
      DROVER_EXPECT_OK(writer->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
      DROVER_EXPECT_OK(writer->on_abandoned({step, 1, 2ms, 1ms, step + 1}));
      DROVER_EXPECT_OK(writer->on_evaluation({step, 70ms, 0.4, 0.9, 10}));
    }
    DROVER_EXPECT_OK(writer->on_event(lost_event(71ms, 5, Peer{Role::kShard, 0}, "killed")));
  }  // like a kill
  const auto reopened = RunWriter::reopen(path);
  ASSERT_TRUE(reopened.ok()) << reopened.error().message;
  DROVER_EXPECT_OK(reopened.value()->restart_at(4));
  for (Step step = 4; step < 8; ++step)
    DROVER_EXPECT_OK(reopened.value()->on_step(sample_step(step, 2), sample_arrivals(step, 2)));
  DROVER_EXPECT_OK(reopened.value()->on_end({.outcome = RunOutcome::kCompleted}));

  const RunReader reader = reader_at(path);
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 8u);
  for (Step step = 0; step < 8; ++step) EXPECT_EQ(steps[step].step, step);
  EXPECT_EQ(reader.arrivals().value().size(), 16u);
  EXPECT_EQ(reader.decisions().value().size(), 4u);
  EXPECT_EQ(reader.abandoned().value().size(), 4u);
  EXPECT_EQ(reader.evaluations().value().size(), 5u) << "of the parameters after 0 to 4 steps";
  EXPECT_EQ(reader.events().value().size(), 1u);
}

TEST(RunWriter, OnlyAnExistingRunCanBeReopened) {
  const TempFolder folder;
  EXPECT_FALSE(RunWriter::reopen(folder.file("none.db")).ok());
}

TEST(RunWriter, KeepsAllRecords) {
  const TempFolder folder;
  const std::string path = folder.file("deep/er/run.db");
  const auto writer = writer_at(path);
  DROVER_EXPECT_OK(writer->on_peer({Peer{Role::kWorker, 0}, "node1", 41}));
  DROVER_EXPECT_OK(writer->on_peer({Peer{Role::kShard, 0}, "node1", 42}));
  DROVER_EXPECT_OK(
      writer->on_peer({Peer{Role::kWorker, 0}, "node2", 43}));  // rejoined from another host
  DROVER_EXPECT_OK(writer->on_decision({5, 3, 4, "3 of 4 is fastest", 12ms, 3ms, {}, true}));
  StepRecord step = sample_step(5, 2);
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.closing = 4ms;
  step.undecided = 1ms;
  step.signal = 0.5;
  step.noise = 8.0;
  DROVER_EXPECT_OK(writer->on_step(step, sample_arrivals(5, 2)));
  DROVER_EXPECT_OK(writer->on_abandoned({5, 3, 2ms, 1ms, 6}));
  DROVER_EXPECT_OK(writer->on_evaluation({6, 70ms, 0.4, 0.9, 10'000}));
  DROVER_EXPECT_OK(
      writer->on_event(lost_event(71ms, 5, Peer{Role::kWorker, 0}, "connection closed")));
  DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kInterrupted,
                                   .cause = EndCause::kInterrupted,
                                   .reason = "Ctrl-C",
                                   .elapsed = 80ms,
                                   .parameters_digest = ~uint64_t{0},
                                   .memory_bytes = {{Peer{Role::kShard, 0}, 1 << 20}}}));

  const RunReader reader = reader_at(path);
  EXPECT_EQ(reader.warning(), "");
  EXPECT_EQ(reader.header().value(), sample_header());
  const auto peers = reader.peers().value();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_EQ(peers[1].peer, (Peer{Role::kWorker, 0}));
  EXPECT_EQ(peers[1].host, "node2");
  EXPECT_EQ(peers[1].pid, 43);
  const auto decisions = reader.decisions().value();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].cutoff, 3u);
  EXPECT_EQ(decisions[0].alive, 4u);
  EXPECT_EQ(decisions[0].reason, "3 of 4 is fastest");
  EXPECT_EQ(decisions[0].time_limit, 12ms);
  EXPECT_EQ(decisions[0].at, 3ms);
  EXPECT_TRUE(decisions[0].model_stale);
  const auto abandoned = reader.abandoned().value();
  ASSERT_EQ(abandoned.size(), 1u);
  EXPECT_EQ(abandoned[0].step, 5u);
  EXPECT_EQ(abandoned[0].worker, 3u);
  EXPECT_EQ(abandoned[0].wasted, 2ms);
  EXPECT_EQ(abandoned[0].restart, 1ms);
  EXPECT_EQ(abandoned[0].resumed, 6u);
  const auto steps = reader.steps().value();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 5u);
  EXPECT_EQ(steps[0].at, step.at);
  EXPECT_EQ(steps[0].closing, 4ms);
  EXPECT_EQ(steps[0].undecided, 1ms);
  EXPECT_EQ(steps[0].signal, 0.5);
  EXPECT_EQ(steps[0].noise, 8.0);
  EXPECT_TRUE(std::isnan(steps[0].noise_scale));
  EXPECT_EQ(steps[0].elapsed, step.elapsed);
  EXPECT_EQ(steps[0].contributors, 2u);
  EXPECT_EQ(steps[0].samples, 128u);
  EXPECT_TRUE(std::isnan(steps[0].loss));
  EXPECT_EQ(steps[0].accuracy, 0.5);
  EXPECT_EQ(steps[0].learning_rate, 0.05);
  EXPECT_EQ(steps[0].last_worker, 1u);
  EXPECT_EQ(steps[0].aggregate, 300us);
  const auto arrivals = reader.arrivals().value();
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[1].arrival.worker, 1u);
  EXPECT_EQ(arrivals[1].arrival.run_time, 2ms);
  EXPECT_EQ(arrivals[1].arrival.compute, 1ms);
  const auto evaluations = reader.evaluations().value();
  ASSERT_EQ(evaluations.size(), 1u);
  EXPECT_EQ(evaluations[0].version, 6u);
  EXPECT_EQ(evaluations[0].accuracy, 0.9);
  EXPECT_EQ(evaluations[0].samples, 10'000u);
  const auto events = reader.events().value();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], lost_event(71ms, 5, Peer{Role::kWorker, 0}, "connection closed"));
  const RunEnd end = reader.end().value();
  EXPECT_EQ(end.outcome, RunOutcome::kInterrupted);
  EXPECT_EQ(end.cause, EndCause::kInterrupted);
  EXPECT_EQ(end.reason, "Ctrl-C");
  EXPECT_EQ(end.elapsed, 80ms);
  EXPECT_EQ(end.parameters_digest, ~uint64_t{0});
  ASSERT_EQ(end.memory_bytes.size(), 1u);
  EXPECT_EQ(end.memory_bytes[0].first, (Peer{Role::kShard, 0}));
  EXPECT_EQ(end.memory_bytes[0].second, 1u << 20);
}

TEST(RunWriter, LeavesASingleFileWhenTheRunHasEnded) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->flush());
  EXPECT_TRUE(std::filesystem::exists(folder.file("run.db-wal")));
  DROVER_EXPECT_OK(writer->on_end({}));
  EXPECT_FALSE(std::filesystem::exists(folder.file("run.db-wal")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("run.db-shm")));
}

TEST(RunWriter, EndsWhileAReaderIsOpen) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 2), sample_arrivals(0, 2)));
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kRunning);
  DROVER_EXPECT_OK(writer->on_end({}));
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kCompleted);
}

TEST(RunWriter, AcceptsRecordsAfterTheEnd) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  DROVER_EXPECT_OK(writer->on_end({}));
  DROVER_EXPECT_OK(writer->on_event({1s, 9, {}, event::Ended{.outcome = RunOutcome::kFailed}}));
  RunEnd end;
  end.outcome = RunOutcome::kFailed;
  DROVER_EXPECT_OK(writer->on_end(end));
  const RunReader reader = reader_at(folder.file("run.db"));
  EXPECT_EQ(reader.events().value().size(), 1u);
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kFailed);
}

TEST(RunWriter, ShowsARunningRunUpToTheLastFlush) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"), {.rows_per_commit = 9, .pages_max = 0});
  const RunReader reader = reader_at(folder.file("run.db"));
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 3), sample_arrivals(0, 3)));
  EXPECT_EQ(reader.steps().value().size(), 0u);
  DROVER_EXPECT_OK(writer->flush());
  EXPECT_EQ(reader.steps().value().size(), 1u);
  DROVER_EXPECT_OK(writer->on_step(sample_step(1, 3), sample_arrivals(1, 3)));
  DROVER_EXPECT_OK(writer->on_step(sample_step(2, 3), sample_arrivals(2, 3)));
  EXPECT_EQ(reader.steps().value().size(), 1u);
  DROVER_EXPECT_OK(writer->on_decision({3, 1, 1, ""}));  // the ninth row since the flush
  EXPECT_EQ(reader.steps().value().size(), 3u);
  EXPECT_EQ(reader.arrivals().value().size(), 9u);
}

TEST(RunWriter, DestroyedWithoutAnEndKeepsTheRowsAndLeavesTheRunOpen) {
  const TempFolder folder;
  DROVER_EXPECT_OK(writer_at(folder.file("run.db"))->on_step(sample_step(0, 2), {}));
  const RunEnd end = reader_at(folder.file("run.db")).end().value();
  EXPECT_EQ(end.outcome, RunOutcome::kRunning);
  EXPECT_EQ(end.cause, EndCause::kUnknown);
  EXPECT_FALSE(end.reason.empty());
  EXPECT_EQ(end.elapsed, 9ms);  // of the only step
}

TEST(RunWriter, ARepeatedEvaluationReplacesTheFirst) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (const Version version : {4u, 6u, 6u, 8u})
    DROVER_EXPECT_OK(writer->on_evaluation({.version = version}));
  DROVER_EXPECT_OK(writer->restart_at(6));
  for (const Version version : {6u, 8u})
    DROVER_EXPECT_OK(writer->on_evaluation({.version = version}));
  DROVER_EXPECT_OK(writer->flush());
  std::vector<Version> versions;
  const auto found = reader_at(folder.file("run.db")).evaluations().value();
  for (const EvaluationRecord& each : found) versions.push_back(each.version);
  EXPECT_EQ(versions, (std::vector<Version>{4, 6, 8}));
}

TEST(RunWriter, ALateArrivalReplacesTheBound) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  DROVER_EXPECT_OK(writer->on_late_arrival({0, 2, 30ms, false, 28ms}));  // before its step
  DROVER_EXPECT_OK(
      writer->on_step(sample_step(0, 3),
                      {{0, 0, 1ms, false, 1ms}, {0, 1, 9ms, true, 0ms}, {0, 2, 9ms, true, 0ms}}));
  DROVER_EXPECT_OK(writer->on_late_arrival({0, 1, 20ms, false, 18ms}));
  DROVER_EXPECT_OK(writer->flush());
  const auto arrivals = reader_at(folder.file("run.db")).arrivals().value();
  ASSERT_EQ(arrivals.size(), 3u);
  EXPECT_FALSE(arrivals[0].late);
  for (const size_t late : {size_t{1}, size_t{2}}) {
    EXPECT_TRUE(arrivals[late].late);
    EXPECT_FALSE(arrivals[late].arrival.censored);
  }
  EXPECT_EQ(arrivals[1].arrival.run_time, 20ms);
  EXPECT_EQ(arrivals[1].arrival.compute, 18ms);
  EXPECT_EQ(arrivals[2].arrival.run_time, 30ms);
}

TEST(RunWriter, NeverOverwritesAnything) {
  const TempFolder folder;
  const std::string run = folder.file("run.db");
  DROVER_EXPECT_OK(writer_at(run)->on_end({}));
  folder.make_file("thesis.txt", "three years of work");
  {
    Result<Database> other = Database::open(folder.file("other.db"), Database::Mode::kCreate);
    DROVER_EXPECT_OK(other.value().execute("CREATE TABLE mine (a)"));
  }
  std::filesystem::create_directory(folder.file("folder"));
  folder.make_file("empty", "");
  folder.make_file("gone.db-wal", "the log of a run that was deleted");
  std::map<std::string, std::string> reasons;
  for (const std::string name :
       {"run.db", "thesis.txt", "other.db", "folder", "empty", "gone.db", "thesis.txt/run.db"}) {
    SCOPED_TRACE(name);
    const std::string path = folder.file(name);
    const std::string before = content_of(path);
    const auto writer = RunWriter::create(path, sample_header());
    ASSERT_FALSE(writer.ok());
    EXPECT_THAT(writer.error().message, mentions(path));
    EXPECT_EQ(content_of(path), before);
    reasons[name] = without(writer.error().message, path);
  }
  EXPECT_THAT(reasons["run.db"], mentions("drover runs")) << "how to look at it";
  EXPECT_THAT(reasons["folder"], HasSubstr("/run.db")) << "a possible name";
  EXPECT_THAT(reasons["gone.db"], HasSubstr("-wal"));
  EXPECT_THAT(reasons["thesis.txt/run.db"], mentions("--run-file"));
  EXPECT_EQ(reasons["other.db"], reasons["thesis.txt"]);
  EXPECT_EQ(reasons["empty"], reasons["thesis.txt"]);
  std::set<std::string> different;
  for (const auto& [name, reason] : reasons) different.insert(reason);
  EXPECT_EQ(different.size(), 5u);
  EXPECT_FALSE(RunWriter::create("", sample_header()).ok());
}

TEST(RunWriter, RefusesARunFileAnotherWriterIsUsing) {
  const TempFolder folder;
  const auto first = writer_at(folder.file("run.db"));
  const auto second = RunWriter::create(folder.file("run.db"), sample_header());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error(),
              is_error(ErrorKind::kInvalidInput, folder.file("run.db"), "drover runs"));
  DROVER_EXPECT_OK(first->on_end({}));
}

TEST(RunWriter, AFullDiskIsReportedAndCommittedRowsStay) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path, {.rows_per_commit = 50, .pages_max = 40});
  Status status = done();
  Step step = 0;
  for (; status.ok() && step < 10'000; ++step) {
    status = writer->on_step(sample_step(step, 20), sample_arrivals(step, 20));
  }
  ASSERT_FALSE(status.ok());
  const std::string message = status.error().message;
  EXPECT_THAT(status.error(),
              is_error(ErrorKind::kSystem, path, sqlite3_errstr(SQLITE_FULL), "--run-file"));

  // The first failure is final ...
  const Status again = writer->on_event({});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, message);
  EXPECT_FALSE(writer->flush().ok());
  // ... but the end still fits, and the message names the last kept step.
  RunEnd end;
  end.outcome = RunOutcome::kFailed;
  DROVER_EXPECT_OK(writer->on_end(end));
  const RunReader reader = reader_at(path);
  EXPECT_EQ(reader.end().value().outcome, RunOutcome::kFailed);
  const auto kept = reader.steps().value();
  ASSERT_FALSE(kept.empty());
  EXPECT_LT(kept.size(), step);
  EXPECT_THAT(message, mentions(kept.back().step));
  EXPECT_EQ(reader.arrivals().value().size(), 20 * kept.size());
}

// A limit on the size of files simulates a broken disk. The limit is per process, so this uses a
// child.
TEST(RunWriter, ARefusedWriteIsReported) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const auto writer = writer_at(path, {.rows_per_commit = 50, .pages_max = 0});
    const rlimit limit{300'000, 300'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Status status = done();
    for (Step step = 0; status.ok() && step < 10'000; ++step) {
      status = writer->on_step(sample_step(step, 20), sample_arrivals(step, 20));
    }
    const bool reported = !status.ok() && status.error().kind == ErrorKind::kSystem &&
                          has_value(status.error().message, std::to_string(SQLITE_IOERR_WRITE)) &&
                          has_value(status.error().message, path);
    if (!reported)
      std::fprintf(stderr, "%s\n", status.ok() ? "ok" : status.error().message.c_str());
    _exit(reported ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const RunReader reader = reader_at(path);
  EXPECT_GT(reader.steps().value().size(), 0u);
  EXPECT_EQ(reader.arrivals().value().size(), 20 * reader.steps().value().size());
}

}  // namespace
}  // namespace drover

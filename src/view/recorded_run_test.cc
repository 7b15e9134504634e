// The numbers of a run match its file, regardless of the portions in which it was read.
#include "view/recorded_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "core/event_samples.h"
#include "core/quantile.h"
#include "view/random_run.h"
#include "view/run_json.h"
#include "view/run_snapshot.h"
#include "view/step_detail.h"

namespace drover {
namespace {

using std::chrono::seconds;

RunSnapshot snapshot_at(const std::string& path, uint64_t arrivals_max = 1'000'000) {
  RecordedRun run;
  const RunReader reader = reader_at(path);
  while (true) {
    const auto more = run.read(reader, arrivals_max);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !more.value()) return snapshot_of(run, {});
  }
}

const std::vector<double>& column(const RunSnapshot& snapshot, std::string_view name) {
  for (const auto& [each, values] : snapshot.steps.columns) {
    if (each == name) return values;
  }
  ADD_FAILURE() << "no column " << name;
  return snapshot.steps.columns.front().second;
}

// The data of one step, found by a search of the whole file.
struct SlowStep {
  StepRecord record;
  std::vector<RecordedArrival> arrivals;
};
std::vector<SlowStep> slow_steps(const std::string& path) {
  const RunReader reader = reader_at(path);
  std::vector<SlowStep> steps;
  const auto records = reader.steps();
  const auto arrivals = reader.arrivals();
  for (const StepRecord& record : records.value()) steps.push_back({record, {}});
  for (const RecordedArrival& each : arrivals.value())
    steps[each.arrival.step].arrivals.push_back(each);
  return steps;
}

class RandomRuns : public ::testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint32_t kWorkers = 5;
  void SetUp() override { path_ = random_run_file(folder_, GetParam(), kWorkers, 60 * GetParam()); }
  TempFolder folder_;
  std::string path_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomRuns, ::testing::Values(1, 2, 5, 18));

TEST_P(RandomRuns, HaveBucketsThatAreMeansAndSums) {
  const RunSnapshot snapshot = snapshot_at(path_);
  const std::vector<SlowStep> steps = slow_steps(path_);
  const uint64_t per = snapshot.steps.per;
  ASSERT_LE(column(snapshot, "step").size(), kStepBuckets);
  ASSERT_EQ(column(snapshot, "step").size(), (steps.size() + per - 1) / per);
  for (size_t bucket = 0; bucket < column(snapshot, "step").size(); ++bucket) {
    SCOPED_TRACE(bucket);
    double elapsed = 0, longest = 0, contributors = 0, late = 0, saved = 0, parts = 0;
    Mean oracle, loss;
    bool diverged = false;
    const size_t begin = bucket * per;
    const size_t end = std::min(steps.size(), begin + per);
    for (size_t i = begin; i < end; ++i) {
      const StepRecord& record = steps[i].record;
      elapsed += drover::seconds(record.elapsed);
      longest = std::max(longest, drover::seconds(record.elapsed));
      contributors += record.contributors;
      late += record.late;
      loss.add(record.loss);
      diverged |= std::isnan(record.loss) && record.contributors > 0;
      oracle.add(oracle_cutoff(steps[i].arrivals));
      Duration last_used{}, last{};
      for (const RecordedArrival& each : steps[i].arrivals) {
        last = std::max(last, each.arrival.run_time);
        if (in_time(each)) last_used = std::max(last_used, each.arrival.run_time);
      }
      // If no worker was in time, the step waited until it closed.
      if (record.contributors == 0) last_used = record.elapsed;
      saved += std::max(0.0, drover::seconds(last - last_used));
    }
    const auto count = static_cast<double>(end - begin);
    EXPECT_EQ(column(snapshot, "step")[bucket], static_cast<double>(begin));
    EXPECT_NEAR(column(snapshot, "at_s")[bucket], drover::seconds(steps[begin].record.at), 1e-9);
    EXPECT_NEAR(column(snapshot, "elapsed_s")[bucket], elapsed / count, 1e-9);
    EXPECT_NEAR(column(snapshot, "elapsed_max_s")[bucket], longest, 1e-12);
    EXPECT_NEAR(column(snapshot, "contributors")[bucket], contributors / count, 1e-9);
    EXPECT_EQ(column(snapshot, "late")[bucket], late);
    EXPECT_NEAR(column(snapshot, "saved_s")[bucket], saved, 1e-9);
    EXPECT_EQ(std::isnan(column(snapshot, "oracle")[bucket]), oracle.count == 0);
    if (oracle.count > 0) {
      EXPECT_NEAR(column(snapshot, "oracle")[bucket], oracle.value(), 1e-9);
    }
    EXPECT_EQ(std::isnan(column(snapshot, "loss")[bucket]), diverged || loss.count == 0);
    for (const char* part : {"computing_s", "waiting_s", "moving_s", "aggregating_s", "deciding_s"})
      parts += column(snapshot, part)[bucket];
    if (!std::isnan(column(snapshot, "computing_s")[bucket])) {
      EXPECT_NEAR(parts, elapsed / count, 1e-9) << "the parts add up to the time";
    }
  }
}

TEST_P(RandomRuns, HaveTheWorkersOfTheStore) {
  const RunSnapshot snapshot = snapshot_at(path_);
  const auto slow = reader_at(path_).workers().value();
  ASSERT_EQ(snapshot.worker_lines.size(), slow.size());
  std::map<WorkerId, std::vector<bool>> missed;
  std::map<WorkerId, uint64_t> last;
  for (const SlowStep& step : slow_steps(path_)) {
    for (const RecordedArrival& each : step.arrivals) {
      missed[each.arrival.worker].push_back(!in_time(each));
      if (in_time(each) && each.arrival.worker == step.record.last_worker)
        ++last[each.arrival.worker];
    }
  }
  for (size_t i = 0; i < slow.size(); ++i) {
    SCOPED_TRACE(i);
    const WorkerLine& line = snapshot.worker_lines[i];
    EXPECT_EQ(line.worker, slow[i].worker);
    EXPECT_EQ(line.node, "node" + std::to_string(i / 2));
    EXPECT_EQ(line.steps, slow[i].steps);
    EXPECT_EQ(line.late, slow[i].late);
    EXPECT_EQ(line.censored, slow[i].censored);
    EXPECT_EQ(line.last, last[slow[i].worker]);
    EXPECT_DOUBLE_EQ(line.inclusion, slow[i].inclusion());
    EXPECT_NEAR(line.median_s / drover::seconds(slow[i].median_run_time), 1.0, 0.006);
    if (line.median_exact) {
      EXPECT_TRUE(slow[i].median_exact);
    }
    double after = 0, again = 0;
    const std::vector<bool>& own = missed[slow[i].worker];
    for (size_t step = 1; step < own.size(); ++step) {
      after += own[step - 1] ? 1 : 0;
      again += own[step - 1] && own[step] ? 1 : 0;
    }
    if (after > 0) {
      EXPECT_DOUBLE_EQ(line.recurrence, again / after);
    }
    if (after == 0) {
      EXPECT_TRUE(std::isnan(line.recurrence));
    }
  }
}

TEST_P(RandomRuns, HaveAHeatMapOfMeans) {
  const RunSnapshot snapshot = snapshot_at(path_);
  const std::vector<SlowStep> steps = slow_steps(path_);
  ASSERT_LE(snapshot.heat.step.size(), kHeatColumns);
  ASSERT_EQ(snapshot.heat.rows.size(), kWorkers);
  for (size_t place = 0; place < snapshot.heat.step.size(); ++place) {
    std::vector<Mean> times(kWorkers), late(kWorkers);
    for (size_t i = place * snapshot.heat.per;
         i < std::min(steps.size(), (place + 1) * snapshot.heat.per); ++i) {
      for (const RecordedArrival& each : steps[i].arrivals) {
        times[each.arrival.worker].add(drover::seconds(each.arrival.run_time));
        late[each.arrival.worker].add(in_time(each) ? 0.0 : 1.0);
      }
    }
    for (size_t row = 0; row < kWorkers; ++row) {
      const double mean = snapshot.heat.time_s[place][row];
      ASSERT_EQ(std::isnan(mean), times[row].count == 0);
      if (times[row].count == 0) continue;
      EXPECT_NEAR(mean, times[row].value(), 1e-9);
      EXPECT_NEAR(snapshot.heat.late[place][row], late[row].value(), 1e-9);
    }
  }
}

// Computes each step separately, with the decision in force in it.
TEST_P(RandomRuns, EstimateTheTimeSavedByTheForecastInForce) {
  const RunReader reader = reader_at(path_);
  double about = 0.0;
  double predicted_steps = 0.0;
  Duration longest{};  // of the run-times up to this step
  for (const SlowStep& step : slow_steps(path_)) {
    Duration last_used{}, last{};
    bool unknown = false;
    for (const RecordedArrival& each : step.arrivals) {
      last = std::max(last, each.arrival.run_time);
      unknown |= each.arrival.censored;
      if (!each.arrival.censored) longest = std::max(longest, each.arrival.run_time);
      if (in_time(each)) last_used = std::max(last_used, each.arrival.run_time);
    }
    if (step.record.contributors == 0) last_used = step.record.elapsed;
    double saved = std::max(0.0, drover::seconds(last - last_used));
    Step decided = step.record.step;
    while (decided > 0 && reader.decisions(decided, decided + 1).value().empty()) --decided;
    const auto expected = reader.expected(decided).value();
    if (unknown && !expected.empty()) {
      const double mean = static_cast<double>(expected.back().mean);
      const double last_s = std::min(mean, drover::seconds(longest));
      saved = std::max(saved, last_s - drover::seconds(last_used));
      ++predicted_steps;
    }
    about += saved;
  }
  const PageTotals totals = snapshot_at(path_).totals;
  ASSERT_GT(predicted_steps, 0.0);
  EXPECT_NEAR(totals.saved_about_s, about, 1e-6);
  EXPECT_GT(totals.saved_about_s, totals.saved_s);
  const RunSnapshot snapshot = snapshot_at(path_);
  const std::vector<double>& buckets = column(snapshot, "saved_about_s");
  EXPECT_NEAR(std::accumulate(buckets.begin(), buckets.end(), 0.0), about, 1e-6);
}

TEST_P(RandomRuns, HaveTheStoresTotals) {
  const RunSnapshot snapshot = snapshot_at(path_);
  const RunReader reader = reader_at(path_);
  const RunTotals totals = reader.totals().value();
  EXPECT_EQ(snapshot.progress.step, totals.steps);
  EXPECT_EQ(snapshot.totals.samples, totals.samples);
  EXPECT_EQ(snapshot.totals.used, totals.gradients_used);
  EXPECT_EQ(snapshot.totals.late, totals.gradients_late);
  EXPECT_EQ(snapshot.totals.refused, totals.gradients_refused);
  std::vector<Duration> elapsed;
  for (const SlowStep& step : slow_steps(path_)) elapsed.push_back(step.record.elapsed);
  EXPECT_DOUBLE_EQ(snapshot.totals.step_median_s, drover::seconds(percentile(elapsed, 50)));
  EXPECT_DOUBLE_EQ(snapshot.totals.step_p90_s, drover::seconds(percentile(elapsed, 90)));
  EXPECT_EQ(snapshot.totals.test_loss, reader.evaluations().value().back().loss);
  EXPECT_NEAR(snapshot.totals.wait_all_s, snapshot.totals.waited_s + snapshot.totals.saved_s, 1e-9);
  EXPECT_EQ(snapshot.progress.state, RunState::kCompleted);
}

TEST_P(RandomRuns, AreEqualIfReadInPortions) {
  const std::string whole = all_json(snapshot_at(path_));
  for (const uint64_t portion : {100u, 700u}) {
    SCOPED_TRACE(portion);
    EXPECT_EQ(all_json(snapshot_at(path_, portion)), whole);
  }
}

TEST_P(RandomRuns, AreEqualIfReadWhileTheyGrow) {
  const std::string path = folder_.file("growing.db");
  const auto writer = writer_at(path);
  const RandomRun writes(GetParam(), kWorkers);
  RecordedRun run;
  Step step = 0;
  for (uint64_t round = 0; round < 30; ++round) {
    const Step to = step + draw({GetParam(), round}) % 12;
    writes.write(*writer, step, to);
    step = to;
    DROVER_EXPECT_OK(writer->flush());
    while (true) {
      const auto more = run.read(reader_at(path), 50);
      ASSERT_TRUE(more.ok()) << more.error().message;
      if (!more.value()) break;
    }
    ASSERT_EQ(all_json(snapshot_of(run, {})), all_json(snapshot_at(path))) << "after " << step;
  }
}

TEST(RecordedRun, DoublesItsBucketsInALongRun) {
  const TempFolder folder;
  const RunSnapshot snapshot = snapshot_at(random_run_file(folder, 3, 2, 2500));
  EXPECT_EQ(snapshot.steps.per, 4u);
  EXPECT_EQ(column(snapshot, "step").size(), 625u);
  EXPECT_EQ(snapshot.heat.per, 8u);
  EXPECT_EQ(snapshot.heat.step.size(), 313u);
  EXPECT_EQ(snapshot.heat.step[1], 8u);
  EXPECT_EQ(snapshot.decisions.size(), 30u);
  EXPECT_LE(snapshot.events.size(), 100u);
  for (size_t i = 1; i < snapshot.decisions.size(); ++i)
    EXPECT_LE(snapshot.decisions[i].decision.step, snapshot.decisions[i - 1].decision.step);
}

TEST(RecordedRun, AnEmptyRunIsWaiting) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const RunSnapshot snapshot = snapshot_of(run, seconds(5));
  EXPECT_EQ(snapshot.progress.state, RunState::kWaiting);
  EXPECT_EQ(snapshot.progress.step, 0u);
  EXPECT_EQ(snapshot.workers, 4u) << "as in its settings";
  EXPECT_TRUE(column(snapshot, "step").empty());
  EXPECT_TRUE(std::isnan(snapshot.totals.loss));
  EXPECT_EQ(snapshot_of(run, seconds(500)).progress.state, RunState::kSilent);
}

TEST(RecordedRun, EstimatesTheTimeLeft) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  RunHeader header = sample_header();
  header.settings.emplace_back("steps", "100");
  auto writer = RunWriter::create(path, header);
  ASSERT_TRUE(writer.ok());
  for (Step step = 0; step < 20; ++step)
    DROVER_EXPECT_OK(writer.value()->on_step(sample_step(step, 4), sample_arrivals(step, 4)));
  DROVER_EXPECT_OK(writer.value()->flush());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const RunProgress progress = snapshot_of(run, seconds(1)).progress;
  EXPECT_EQ(progress.state, RunState::kRunning);
  EXPECT_EQ(progress.step, 20u);
  EXPECT_EQ(progress.steps, 100u);
  EXPECT_NEAR(progress.left_s, 80 * 0.01, 0.01) << "10 ms per step";
  EXPECT_EQ(snapshot_of(run, seconds(100)).progress.state, RunState::kSilent);
  EXPECT_TRUE(std::isnan(snapshot_of(run, seconds(100)).progress.left_s));
}

// As `drover launch` writes it: the workers' scripts determine the end.
TEST(RecordedRun, ARunWithoutAPlannedEndHasNoTotal) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  RunHeader header = sample_header();
  header.settings.emplace_back("steps", std::to_string(kEndless));
  auto writer = RunWriter::create(path, header);
  ASSERT_TRUE(writer.ok());
  for (Step step = 0; step < 20; ++step)
    DROVER_EXPECT_OK(writer.value()->on_step(sample_step(step, 4), sample_arrivals(step, 4)));
  DROVER_EXPECT_OK(writer.value()->flush());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  RunProgress progress = snapshot_of(run, seconds(1)).progress;
  EXPECT_EQ(progress.state, RunState::kRunning);
  EXPECT_EQ(progress.step, 20u);
  EXPECT_EQ(progress.steps, std::nullopt);
  EXPECT_TRUE(std::isnan(progress.left_s));
  EXPECT_NEAR(progress.steps_per_s, 100.0, 1.0);

  DROVER_EXPECT_OK(writer.value()->on_end({.outcome = RunOutcome::kCompleted}));
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  progress = snapshot_of(run, seconds(1)).progress;
  EXPECT_EQ(progress.state, RunState::kCompleted);
  EXPECT_EQ(progress.steps, std::nullopt);
}

TEST(RecordedRun, HasTheLostProcesses) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  DROVER_EXPECT_OK(
      writer->on_event(lost_event(seconds(1), 1, Peer{Role::kWorker, 2}, "connection closed")));
  DROVER_EXPECT_OK(
      writer->on_event(lost_event(seconds(2), 2, Peer{Role::kWorker, 3}, "connection closed")));
  DROVER_EXPECT_OK(writer->on_event({seconds(3), 3, Peer{Role::kWorker, 2}, event::Joined{}}));
  DROVER_EXPECT_OK(writer->on_event(lost_event(seconds(3), 3, Peer{Role::kShard, 1}, "")));
  DROVER_EXPECT_OK(writer->flush());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const RunSnapshot snapshot = snapshot_of(run, {});
  EXPECT_EQ(snapshot.worker_lines[1].state, WorkerState::kAlive);
  EXPECT_EQ(snapshot.worker_lines[2].state, WorkerState::kAlive);
  EXPECT_EQ(snapshot.worker_lines[3].state, WorkerState::kLost);
  EXPECT_EQ(snapshot.events.front().peer, (Peer{Role::kShard, 1})) << "newest first";
}

TEST(RecordedRun, AWorkerThatHasLeftIsFinishedNotAlive) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  DROVER_EXPECT_OK(writer->on_event({seconds(1), 1, Peer{Role::kWorker, 2}, event::Left{}}));
  DROVER_EXPECT_OK(writer->flush());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const RunSnapshot snapshot = snapshot_of(run, {});
  EXPECT_EQ(snapshot.worker_lines[1].state, WorkerState::kAlive);
  EXPECT_EQ(snapshot.worker_lines[2].state, WorkerState::kFinished);
}

// A restarted run continues with the workers that join again. It records no `joined` event of them.
TEST(RecordedRun, WorkersLostBeforeARestartAreAliveAfterIt) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  DROVER_EXPECT_OK(writer->on_event(lost_event(seconds(1), 1, Peer{Role::kWorker, 2}, "closed")));
  DROVER_EXPECT_OK(writer->on_event({seconds(2), 2, {}, event::Restarted{}}));
  DROVER_EXPECT_OK(writer->on_event({seconds(3), 1, {}, event::Resumed{.version = 1}}));
  DROVER_EXPECT_OK(writer->on_event(lost_event(seconds(4), 4, Peer{Role::kWorker, 3}, "closed")));
  DROVER_EXPECT_OK(writer->flush());
  RecordedRun run;
  ASSERT_TRUE(run.read(reader_at(path)).ok());
  const RunSnapshot snapshot = snapshot_of(run, {});
  EXPECT_EQ(snapshot.worker_lines[2].state, WorkerState::kAlive);
  EXPECT_EQ(snapshot.worker_lines[3].state, WorkerState::kLost);
}

// A script that has finished has no process that could join again.
TEST(RecordedRun, AWorkerThatHasLeftStaysFinishedAfterARestart) {
  WorkerStates members;
  members.add({seconds(1), 1, Peer{Role::kWorker, 0}, event::Left{}});
  members.add(lost_event(seconds(1), 1, Peer{Role::kWorker, 1}, "closed"));
  EXPECT_EQ(members.state_of(1), WorkerState::kLost);
  members.add({seconds(2), 2, {}, event::Restarted{}});
  EXPECT_EQ(members.state_of(0), WorkerState::kFinished);
  EXPECT_EQ(members.state_of(1), WorkerState::kAlive);
  EXPECT_EQ(members.losses(), 1u);
  members.add({seconds(3), 3, Peer{Role::kWorker, 0}, event::Joined{}});
  EXPECT_EQ(members.state_of(0), WorkerState::kAlive);
}

// A restart removes the steps after the checkpoint from the file and repeats them.
TEST(RecordedRun, ReadsStepsAgainThatARestartHasRemoved) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  const auto record = [&](Step from, Step to, uint32_t workers) {
    for (Step step = from; step < to; ++step) {
      StepRecord made = sample_step(step, workers);
      made.at += seconds(workers);  // later, the second time
      DROVER_EXPECT_OK(writer->on_step(made, sample_arrivals(step, workers)));
    }
    DROVER_EXPECT_OK(writer->flush());
  };
  RecordedRun run;
  for (const Step restart_from : {Step{150}, Step{10}, Step{0}}) {
    SCOPED_TRACE(restart_from);
    DROVER_EXPECT_OK(writer->restart_at(0));
    record(0, 200, 4);
    DROVER_EXPECT_OK(run.read_all(reader_at(path)));
    EXPECT_EQ(run.aggregate().gradients().used, snapshot_at(path).totals.used);
    DROVER_EXPECT_OK(writer->restart_at(restart_from));
    DROVER_EXPECT_OK(run.read_all(reader_at(path)));
    EXPECT_EQ(run.aggregate().step_count(), restart_from);
    record(restart_from, 180, 3);
    DROVER_EXPECT_OK(run.read_all(reader_at(path)));
    EXPECT_EQ(all_json(snapshot_of(run, {})), all_json(snapshot_at(path)));
  }
  // The file is not read between the restart and the old number of steps.
  DROVER_EXPECT_OK(writer->restart_at(10));
  record(10, 200, 2);
  DROVER_EXPECT_OK(run.read_all(reader_at(path)));
  EXPECT_EQ(all_json(snapshot_of(run, {})), all_json(snapshot_at(path)));
}

// The steps of a resumed run continue the numbering of the checkpoint.
TEST(RecordedRun, AResumedRunBeginsAtItsCheckpoint) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  RecordedRun run;
  for (Step step = 123'456; step < 123'656; ++step) {
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 4), sample_arrivals(step, 4)));
    DROVER_EXPECT_OK(writer->flush());
    if (step % 50 == 0) DROVER_EXPECT_OK(run.read_all(reader_at(path), 10));
  }
  DROVER_EXPECT_OK(run.read_all(reader_at(path), 10));
  EXPECT_EQ(run.aggregate().step_count(), 200u);
  EXPECT_EQ(all_json(snapshot_of(run, {})), all_json(snapshot_at(path)));
  EXPECT_EQ(run.aggregate().gradients().used, 800u);
  // It then restarts from step 0.
  DROVER_EXPECT_OK(writer->restart_at(0));
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 4), sample_arrivals(0, 4)));
  DROVER_EXPECT_OK(writer->flush());
  DROVER_EXPECT_OK(run.read_all(reader_at(path)));
  EXPECT_EQ(run.aggregate().step_count(), 1u);
}

TEST(HeatLayout, KeepsTheWorkersOfANodeTogether) {
  const HeatLayout layout = heat_layout({"b", "a", "b", "a"});
  ASSERT_EQ(layout.rows.size(), 4u);
  EXPECT_EQ(layout.row_of, (std::vector<uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(layout.rows[1].first, 2u);
  EXPECT_EQ(layout.rows[1].node, "b");
}

TEST(HeatLayout, NeverHasTooManyRows) {
  for (const uint32_t workers : {0u, 1u, 256u, 257u, 2175u, 10000u}) {
    for (const uint32_t nodes : {1u, 3u, 40u, 256u, 300u, 2000u}) {
      SCOPED_TRACE(std::to_string(workers) + " on " + std::to_string(nodes));
      std::vector<std::string> names;
      for (uint32_t worker = 0; worker < workers; ++worker)
        names.push_back(std::to_string(worker % nodes));
      const HeatLayout layout = heat_layout(names);
      EXPECT_LE(layout.rows.size(), kHeatRows);
      uint32_t all = 0;
      for (const HeatRow& row : layout.rows) all += row.count;
      EXPECT_EQ(all, workers);
      for (uint32_t worker = 0; worker < workers; ++worker) {
        const HeatRow& row = layout.rows[layout.row_of[worker]];
        EXPECT_GE(worker, row.first);
        EXPECT_LE(worker, row.last);
        if (nodes <= kHeatRows) {
          EXPECT_EQ(row.node, names[worker]);
        }
      }
    }
  }
}

TEST(ReadStep, HasTheDetailsOfAStep) {
  const TempFolder folder;
  const std::string path = random_run_file(folder, 4, 5, 30);
  const RunReader reader = reader_at(path);
  const std::vector<SlowStep> steps = slow_steps(path);
  for (Step step = 0; step < 30; ++step) {
    const auto detail = read_step(reader, step);
    ASSERT_TRUE(detail.ok() && detail.value());
    EXPECT_EQ(detail.value()->record.step, step);
    EXPECT_EQ(detail.value()->arrivals.size(), steps[step].arrivals.size());
    EXPECT_TRUE(std::is_sorted(detail.value()->arrivals.begin(), detail.value()->arrivals.end(),
                               [](const auto& a, const auto& b) {
                                 if (in_time(a) != in_time(b)) return in_time(a);
                                 return a.arrival.run_time < b.arrival.run_time;
                               }))
        << "in the order of arrival";
    for (const DecisionRecord& decision : detail.value()->decisions) EXPECT_EQ(decision.step, step);
  }
  const auto beyond = read_step(reader, 30);
  ASSERT_TRUE(beyond.ok());
  EXPECT_FALSE(beyond.value());
}

TEST(ReadStep, SamplesVeryManyArrivals) {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  const auto writer = writer_at(path);
  DROVER_EXPECT_OK(writer->on_step(sample_step(0, 10'000), sample_arrivals(0, 10'000)));
  DROVER_EXPECT_OK(writer->flush());
  const auto detail = read_step(reader_at(path), 0);
  ASSERT_TRUE(detail.ok() && detail.value());
  EXPECT_EQ(detail.value()->arrivals.size(), 3000u);
  EXPECT_EQ(detail.value()->arrivals.front().arrival.worker, 0u);
  EXPECT_EQ(detail.value()->arrivals.back().arrival.worker, 9999u);
}

}  // namespace
}  // namespace drover

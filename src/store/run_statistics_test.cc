// The numbers computed in SQL must be what one gets by hand, also from odd records: empty, NaN,
// censored.
#include "store/run_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "store/test_run.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(RunStatistics, OfARunWithoutStepsAreZero) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  const RunReader reader = reader_at(folder.file("run.db"));
  const RunTotals totals = reader.totals().value();
  EXPECT_EQ(totals.steps, 0u);
  EXPECT_EQ(totals.workers, 0u);
  EXPECT_EQ(totals.last_step_end, 0ns);
  EXPECT_TRUE(reader.workers().value().empty());
  EXPECT_TRUE(reader.curve(10).value().empty());
  EXPECT_TRUE(std::isnan(reader.recent_loss(10).value()));
  const StepStatistics times = reader.step_times().value();
  EXPECT_EQ(times.median, 0ns);
  EXPECT_FALSE(times.overhead_median.has_value());
  EXPECT_EQ(times.closing_median, 0ns);
  EXPECT_EQ(times.undecided_max, 0ns);
  EXPECT_EQ(times.undecided_share, 0.0);
  const WasteStatistics waste = reader.waste().value();
  EXPECT_EQ(waste.stopped, 0u);
  EXPECT_FALSE(waste.restart_median.has_value());
  EXPECT_FALSE(waste.share.has_value());
}

TEST(RunStatistics, TellHowLongStepsTookToCloseAndWaitedForDecisions) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  const std::vector<Duration> closings = {5ms, 1ms, 3ms, 2ms, 400ms};
  for (Step step = 0; step < closings.size(); ++step) {
    StepRecord record = sample_step(step, 2);
    record.closing = closings[step];
    record.undecided = step == 4 ? 390ms : 0ms;
    DROVER_EXPECT_OK(writer->on_step(record, {}));
  }
  DROVER_EXPECT_OK(writer->flush());
  const StepStatistics times = reader_at(folder.file("run.db")).step_times().value();
  EXPECT_EQ(times.closing_median, 3ms);
  EXPECT_EQ(times.undecided_max, 390ms);
  EXPECT_DOUBLE_EQ(times.undecided_share, 0.2);
}

TEST(RunStatistics, WasteIsWhatWasLeftOffAndWhatCameTooLate) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  // 3 ms in time (0.5 + 1 + 1.5), then worker 3 in turn: left off, late, finished but never heard
  // of.
  for (Step step = 0; step < 3; ++step) {
    std::vector<ArrivalRecord> arrivals = sample_arrivals(step, 4);
    arrivals[3].censored = true;
    arrivals[3].compute = step == 2 ? Duration(5ms) : Duration::zero();
    DROVER_EXPECT_OK(writer->on_step(sample_step(step, 3), arrivals));
  }
  DROVER_EXPECT_OK(writer->on_abandoned(
      {.step = 0, .worker = 3, .wasted = 2ms, .restart = 700us, .resumed = 1}));
  DROVER_EXPECT_OK(writer->on_late_arrival(
      {.step = 1, .worker = 3, .run_time = 30ms, .compute = 11ms, .samples = 64}));
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  const WasteStatistics waste = reader.waste().value();
  EXPECT_EQ(waste.stopped, 1u);
  EXPECT_EQ(waste.restart_median, 700us);
  EXPECT_DOUBLE_EQ(waste.share.value(), 18.0 / (18.0 + 9.0));
  for (const auto& [restart, median] :
       {std::pair<Duration, Duration>{100us, 100us}, {900us, 700us}, {300us, 300us}}) {
    DROVER_EXPECT_OK(writer->on_abandoned(
        {.step = 5, .worker = 3, .wasted = 0ms, .restart = restart, .resumed = 6}));
    DROVER_EXPECT_OK(writer->flush());
    EXPECT_EQ(reader.waste().value().restart_median, median) << "one that really occurred";
  }
  const std::vector<WorkerStatistics> workers = reader.workers().value();
  ASSERT_EQ(workers.size(), 4u);
  EXPECT_DOUBLE_EQ(workers[0].inclusion(), 1.0);
  EXPECT_DOUBLE_EQ(workers[3].inclusion(), 0.0);
}

TEST(RunStatistics, SumUpTheSteps) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (const char* peer : {"coordinator", "shard 0", "worker 0", "worker 1", "worker 2"}) {
    DROVER_EXPECT_OK(writer->on_peer({*parse_peer(peer), "here", 1}));
  }
  for (Step step = 0; step < 10; ++step) {
    StepRecord record = sample_step(step, 2);
    record.late = 1;
    record.refused = step == 3 ? 1 : 0;
    record.elapsed = std::chrono::milliseconds(step + 1);
    DROVER_EXPECT_OK(writer->on_step(record, sample_arrivals(step, 2)));
  }
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  const RunTotals totals = reader.totals().value();
  EXPECT_EQ(totals.steps, 10u);
  EXPECT_EQ(totals.samples, 1280u);
  EXPECT_EQ(totals.gradients_used, 20u);
  EXPECT_EQ(totals.gradients_late, 10u);
  EXPECT_EQ(totals.gradients_refused, 1u);
  EXPECT_EQ(totals.workers, 3u);
  EXPECT_EQ(totals.shards, 1u);
  EXPECT_EQ(totals.last_step_end, 100ms);
  const StepStatistics times = reader.step_times().value();
  EXPECT_EQ(times.median, 5ms);
  EXPECT_EQ(times.p90, 9ms);
  EXPECT_EQ(times.overhead_median, 4ms);  // the slower of the two workers computed for 1 ms
  EXPECT_EQ(times.overhead_p90, 8ms);
}

TEST(RunStatistics, OverheadCountsContributorsOnly) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  StepRecord record = sample_step(0, 1);
  record.elapsed = 10ms;
  DROVER_EXPECT_OK(writer->on_step(record, {{0, 0, 9ms, false, 7ms}, {0, 1, 10ms, true, 0ms}}));
  DROVER_EXPECT_OK(writer->on_late_arrival({0, 1, 50ms, false, 48ms}));
  DROVER_EXPECT_OK(writer->flush());
  EXPECT_EQ(reader_at(folder.file("run.db")).step_times().value().overhead_median, 3ms);
}

TEST(RunStatistics, MediansAgreeWithSorting) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const TempFolder folder;
    const auto writer = writer_at(folder.file("run.db"));
    const uint64_t steps = 1 + random() % 30;
    std::vector<std::vector<ArrivalRecord>> of_worker(3);
    for (Step step = 0; step < steps; ++step) {
      std::vector<ArrivalRecord> arrivals;
      for (WorkerId worker = 0; worker < 3; ++worker) {
        arrivals.push_back({step, worker, Duration(random() % 20), random() % 4 == 0, 0ns});
        of_worker[worker].push_back(arrivals.back());
      }
      DROVER_EXPECT_OK(writer->on_step(sample_step(step, 3), arrivals));
    }
    DROVER_EXPECT_OK(writer->flush());
    const auto workers = reader_at(folder.file("run.db")).workers().value();
    ASSERT_EQ(workers.size(), 3u);
    for (WorkerId worker = 0; worker < 3; ++worker) {
      auto& all = of_worker[worker];
      std::sort(all.begin(), all.end(), [](const ArrivalRecord& a, const ArrivalRecord& b) {
        return a.run_time < b.run_time;
      });
      const Duration median = all[(all.size() - 1) / 2].run_time;
      const bool exact = std::none_of(all.begin(), all.end(), [&](const ArrivalRecord& arrival) {
        return arrival.censored && arrival.run_time <= median;
      });
      EXPECT_EQ(workers[worker].worker, worker);
      EXPECT_EQ(workers[worker].steps, steps);
      EXPECT_EQ(workers[worker].last, worker == 2 ? steps : 0);
      EXPECT_EQ(workers[worker].median_run_time, median);
      EXPECT_EQ(workers[worker].median_exact, exact);
    }
  }
}

TEST(RunStatistics, ANaNLossIsNotAveragedAway) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (Step step = 0; step < 6; ++step) {
    StepRecord record = sample_step(step, 1);
    record.loss = step == 4 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(step);
    record.samples = step + 1;
    DROVER_EXPECT_OK(writer->on_step(record, {}));
  }
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  EXPECT_EQ(reader.recent_loss(1).value(), 5.0);
  EXPECT_TRUE(std::isnan(reader.recent_loss(2).value()));
  const auto curve = reader.curve(3).value();
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[1].first_step, 2u);
  EXPECT_EQ(curve[0].loss, 0.5);
  EXPECT_EQ(curve[1].loss, 2.5);
  EXPECT_TRUE(std::isnan(curve[2].loss));
  EXPECT_EQ(curve[0].step_time, 9ms);
  EXPECT_EQ(reader.curve(100).value().size(), 6u);
}

// Blocks that closed with different workers' gradients: an update, but nobody's loss to tell of it.
TEST(RunStatistics, AnUnknownLossIsPassedOver) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  for (Step step = 0; step < 6; ++step) {
    StepRecord record = sample_step(step, 1);
    record.loss = static_cast<double>(step);
    if (step == 2 || step >= 4) {
      record.contributors = 0;
      record.loss = std::numeric_limits<double>::quiet_NaN();
    }
    DROVER_EXPECT_OK(writer->on_step(record, {}));
  }
  DROVER_EXPECT_OK(writer->flush());
  const RunReader reader = reader_at(folder.file("run.db"));
  EXPECT_EQ(reader.recent_loss(2).value(), 2.0) << "of the steps 1 and 3";
  const auto curve = reader.curve(3).value();
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].loss, 0.5);
  EXPECT_EQ(curve[1].loss, 3.0);
  EXPECT_TRUE(std::isnan(curve[2].loss));
}

TEST(RunStatistics, RecentLossIsWeightedBySamples) {
  const TempFolder folder;
  const auto writer = writer_at(folder.file("run.db"));
  StepRecord record = sample_step(0, 1);
  record.loss = 1.0;
  record.samples = 30;
  DROVER_EXPECT_OK(writer->on_step(record, {}));
  record = sample_step(1, 1);
  record.loss = 3.0;
  record.samples = 10;
  DROVER_EXPECT_OK(writer->on_step(record, {}));
  DROVER_EXPECT_OK(writer->flush());
  EXPECT_EQ(reader_at(folder.file("run.db")).recent_loss(2).value(), 1.5);
}

}  // namespace
}  // namespace drover

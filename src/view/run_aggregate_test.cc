// The totals of a run match a manual computation, also for records that are NaN, censored or late.
#include "view/run_aggregate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "store/test_run.h"
#include "view/summary.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class RunAggregateTest : public ::testing::Test {
 protected:
  void record(const StepRecord& step, const std::vector<ArrivalRecord>& arrivals) {
    DROVER_EXPECT_OK(writer_->on_step(step, arrivals));
  }
  RunSummary summary() {
    DROVER_EXPECT_OK(writer_->flush());
    return summarize(reader_at(folder_.file("run.db"))).value();
  }
  RunAggregate aggregate() { return summary().sums; }

  TempFolder folder_;
  std::unique_ptr<RunWriter> writer_ = writer_at(folder_.file("run.db"));
};

TEST_F(RunAggregateTest, HasClosingAndUndecidedTimes) {
  const std::vector<Duration> closings = {5ms, 1ms, 3ms, 2ms, 400ms};
  for (Step step = 0; step < closings.size(); ++step) {
    StepRecord made = sample_step(step, 2);
    made.elapsed = std::chrono::milliseconds(step + 1);
    made.closing = closings[step];
    made.undecided = step == 4 ? 390ms : 0ms;
    record(made, sample_arrivals(step, 2));
  }
  const StepTimeTotals times = aggregate().step_times();
  EXPECT_EQ(times.elapsed.percentile(50), 3ms);
  EXPECT_EQ(times.elapsed.percentile(90), 5ms);
  EXPECT_EQ(times.overhead.percentile(50), 2ms) << "the slower of the two computed for 1 ms";
  EXPECT_EQ(times.closing.percentile(50), 3ms);
  EXPECT_EQ(times.undecided_max, 390ms);
  EXPECT_EQ(times.undecided_steps, 1u);
}

TEST_F(RunAggregateTest, OverheadCountsContributorsOnly) {
  StepRecord made = sample_step(0, 1);
  made.elapsed = 10ms;
  record(made, {{0, 0, 9ms, false, 7ms}, {0, 1, 10ms, true, 0ms}});
  DROVER_EXPECT_OK(writer_->on_late_arrival({0, 1, 50ms, false, 48ms}));
  EXPECT_EQ(aggregate().step_times().overhead.percentile(50), 3ms);
}

TEST_F(RunAggregateTest, WastedTimeIsOfAbortedAndLateGradients) {
  // 3 ms in time (0.5 + 1 + 1.5). Worker 3 is aborted, then late, then finished but not arrived.
  for (Step step = 0; step < 3; ++step) {
    std::vector<ArrivalRecord> arrivals = sample_arrivals(step, 4);
    arrivals[3].censored = true;
    arrivals[3].compute = step == 2 ? Duration(5ms) : Duration::zero();
    record(sample_step(step, 3), arrivals);
  }
  DROVER_EXPECT_OK(writer_->on_abandoned(
      {.step = 0, .worker = 3, .wasted = 2ms, .restart = 700us, .resumed = 1}));
  DROVER_EXPECT_OK(writer_->on_late_arrival(
      {.step = 1, .worker = 3, .run_time = 30ms, .compute = 11ms, .samples = 64}));
  StopTotals stops = summary().stops;
  EXPECT_EQ(stops.stopped, 1u);
  EXPECT_EQ(stops.restart_median, 700us);
  EXPECT_DOUBLE_EQ(stops.wasted_share.value(), 18.0 / (18.0 + 9.0));
  for (const auto& [restart, median] :
       {std::pair<Duration, Duration>{100us, 100us}, {900us, 700us}, {300us, 300us}}) {
    DROVER_EXPECT_OK(writer_->on_abandoned(
        {.step = 5, .worker = 3, .wasted = 0ms, .restart = restart, .resumed = 6}));
    EXPECT_EQ(summary().stops.restart_median, median) << "one of the recorded durations";
  }
  const std::vector<WorkerTotals> workers = aggregate().workers();
  ASSERT_EQ(workers.size(), 4u);
  EXPECT_DOUBLE_EQ(workers[0].inclusion(), 1.0);
  EXPECT_DOUBLE_EQ(workers[3].inclusion(), 0.0);
}

TEST_F(RunAggregateTest, AStepWithoutGradientsInTimeHasNoLastWorker) {
  record({.step = 0, .elapsed = 10ms, .contributors = 2, .last_worker = 1},
         {{0, 0, 4ms}, {0, 1, 9ms}});
  // Closed by its time limit. Without a last worker, the record has worker 0.
  record({.step = 1, .at = 10ms, .elapsed = 10ms, .contributors = 0},
         {{1, 0, 10ms, true}, {1, 1, 10ms, true}});
  DROVER_EXPECT_OK(writer_->on_late_arrival({.step = 1, .worker = 1, .run_time = 25ms}));
  const RunAggregate sums = aggregate();
  EXPECT_EQ(sums.workers()[0].last, 0u);
  EXPECT_EQ(sums.workers()[1].last, 1u);
  EXPECT_DOUBLE_EQ(sums.time().saved_s, 0.015) << "it waited 10 of the 25 ms";
}

TEST_F(RunAggregateTest, ANaNLossIsNotAveragedAway) {
  for (Step step = 0; step < 6; ++step) {
    StepRecord made = sample_step(step, 1);
    made.loss = step == 4 ? kNaN : static_cast<double>(step);
    made.samples = step + 1;
    record(made, {});
  }
  const RunAggregate sums = aggregate();
  EXPECT_EQ(sums.recent_learning().steps, 6u);
  EXPECT_TRUE(std::isnan(sums.recent_learning().loss));
  EXPECT_DOUBLE_EQ(sums.recent_learning().accuracy, 0.5);
  const auto curve = curve_of(sums.steps(), 3);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].loss, 0.5);
  EXPECT_EQ(curve[1].loss, 2.5);
  EXPECT_TRUE(std::isnan(curve[2].loss));
  EXPECT_DOUBLE_EQ(curve[0].step_time_s, 0.009);
  EXPECT_EQ(curve_of(sums.steps(), 100).size(), 6u);
}

// Blocks that closed with different workers' gradients: an update, but no loss is reported.
TEST_F(RunAggregateTest, AnUnknownLossIsSkipped) {
  for (Step step = 0; step < 20; ++step) {
    StepRecord made = sample_step(step, 1);
    made.loss = static_cast<double>(step);
    if (step % 2 == 0 || step >= 18) {
      made.contributors = 0;
      made.loss = kNaN;
    }
    record(made, {});
  }
  const RunAggregate sums = aggregate();
  EXPECT_EQ(sums.recent_learning().loss, 9.0) << "of the steps 1, 3, ... 17";
  const auto curve = curve_of(sums.steps(), 10);
  ASSERT_EQ(curve.size(), 10u);
  EXPECT_EQ(curve[1].loss, 3.0);
  EXPECT_TRUE(std::isnan(curve[9].loss));
}

TEST_F(RunAggregateTest, RecentLossIsOfOnePercentOfTheStepsAndWeightedBySamples) {
  for (Step step = 0; step < 1500; ++step) {
    StepRecord made = sample_step(step, 1);
    made.loss = step < 1485 ? 100.0 : step < 1490 ? 1.0 : 3.0;
    made.samples = step < 1490 ? 60 : 10;
    record(made, {});
  }
  const RecentLearning recent = aggregate().recent_learning();
  EXPECT_EQ(recent.steps, 15u);
  EXPECT_DOUBLE_EQ(recent.loss, (5 * 60 * 1.0 + 10 * 10 * 3.0) / 400.0);
}

TEST_F(RunAggregateTest, BlocksAreSummedUp) {
  StepRecord made = sample_step(0, 2);
  made.block_counts = {{1, 3}, {2, 5}};
  made.fresh_mean = 0.5;
  made.fresh_min = 0.25;
  made.staleness_max = 3;
  record(made, {});
  made.step = 1;
  made.block_counts = {{2, 8}};
  made.fresh_mean = made.fresh_min = 1.0;
  made.staleness_max = 0;
  record(made, {});
  record(sample_step(2, 2), {});
  const BlockTotals blocks = aggregate().blocks();
  EXPECT_DOUBLE_EQ(blocks.fresh.value(), 0.75);
  EXPECT_DOUBLE_EQ(blocks.fresh_min, 0.25);
  EXPECT_EQ(blocks.stale_steps, 1u);
  EXPECT_EQ(blocks.staleness_max, 3u);
  EXPECT_EQ(blocks.uneven_steps, 1u);
  EXPECT_EQ(blocks.contributors_min, 1u);
  EXPECT_EQ(blocks.contributors_max, 2u);
  EXPECT_EQ(blocks.blocks, 16u);
  EXPECT_EQ(blocks.gradients, 29u);
}

TEST(WorkerTotals, AMedianIsExactIfAllBoundsExceedIt) {
  for (const int64_t count : {3, 1001}) {
    SCOPED_TRACE(count);
    WorkerTotals worker;
    for (int64_t i = 0; i < count; ++i) {
      ++worker.steps;
      worker.times.add(std::chrono::milliseconds(100 + i));
    }
    EXPECT_TRUE(worker.median_exact());
    worker.times.add(std::chrono::milliseconds(100 + count));
    worker.bounds.add(std::chrono::milliseconds(100 + count));
    EXPECT_TRUE(worker.median_exact());
    worker.times.add(1ms);
    worker.bounds.add(1ms);
    EXPECT_FALSE(worker.median_exact());
    EXPECT_TRUE(std::isnan(WorkerTotals{}.inclusion()));
    EXPECT_TRUE(std::isnan(WorkerTotals{}.recurrence()));
  }
}

}  // namespace
}  // namespace drover

// A summary is computed from the closings and reports of one step alone.
#include "coordinator/step_summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace drover {
namespace {

using namespace std::chrono_literals;

StepClosed closing(std::vector<StepClosed::Arrival> arrivals) {
  StepClosed closed;
  closed.step = 6;
  closed.elapsed = 40ms;
  closed.arrivals = std::move(arrivals);
  closed.samples = 50;
  return closed;
}

OpenStep two_shards() {
  OpenStep step;
  step.at = 1s;
  step.closed_at = 1050ms;
  step.learning_rate = 0.1;
  step.alive = {0, 1, 2};
  step.closed[0] = closing({{0, 10ms, 6}, {1, 30ms, 6}});
  step.closed[1] = closing({{0, 12ms, 6}, {1, 20ms, 6}});
  step.reports[0] = {
      .step = 6, .samples = 10, .loss = 1.0, .correct = 5, .predictions = 10, .compute = 9ms};
  step.reports[1] = {
      .step = 6, .samples = 30, .loss = 2.0, .correct = 15, .predictions = 30, .compute = 19ms};
  step.reports[2] = {.step = 6, .samples = 70, .loss = 9.0, .predictions = 1, .compute = 29ms};
  return step;
}

StepSummary summary_of(OpenStep step, StepMode mode = StepMode::kSynchronous) {
  count_outcomes(mode, step);
  return summarise(6, mode, step);
}

TEST(StepSummary, WeighsLossBySamplesOverTheGradientsThatWereUsed) {
  const StepSummary summary = summary_of(two_shards());
  EXPECT_EQ(summary.step.step, 6u);
  EXPECT_EQ(summary.step.at, 1s);
  EXPECT_EQ(summary.step.elapsed, 50ms);
  EXPECT_EQ(summary.step.contributors, 2u);
  EXPECT_DOUBLE_EQ(summary.step.loss, 1.75);
  EXPECT_DOUBLE_EQ(summary.step.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(summary.step.learning_rate, 0.1);
  EXPECT_TRUE(std::isnan(summary.step.noise_scale));
  EXPECT_EQ(summary.step.late, 0u);
}

TEST(StepSummary, HasAnArrivalOfEveryWorkerThatWasAlive) {
  const StepSummary summary = summary_of(two_shards());
  ASSERT_EQ(summary.arrivals.size(), 3u);
  EXPECT_EQ(summary.arrivals[0].run_time, 12ms);
  EXPECT_EQ(summary.arrivals[1].compute, 19ms);
  EXPECT_FALSE(summary.arrivals[1].censored);
  EXPECT_EQ(summary.arrivals[2].step, 6u);
  EXPECT_TRUE(summary.arrivals[2].censored);
  EXPECT_EQ(summary.arrivals[2].run_time, 40ms);
  EXPECT_EQ(summary.arrivals[2].samples, 70u);
  EXPECT_EQ(summary.step.last_worker, 1u) << "a straggler is not the last to arrive";
}

TEST(StepSummary, WithoutReportsTheLossIsUnknown) {
  OpenStep step = two_shards();
  step.reports.clear();
  const StepSummary summary = summary_of(step);
  EXPECT_TRUE(std::isnan(summary.step.loss));
  EXPECT_TRUE(std::isnan(summary.step.accuracy));
  EXPECT_EQ(summary.arrivals[0].samples, 0u);
}

TEST(StepSummary, TheLowestWorkerThatSetsALearningRateWins) {
  OpenStep step = two_shards();
  step.reports[1].learning_rate = 0.3;
  step.reports[2].learning_rate = 0.4;
  EXPECT_DOUBLE_EQ(summary_of(step).step.learning_rate, 0.3);
}

TEST(StepSummary, TimesAreOfTheSlowestShardAndSamplesOfTheLeastServed) {
  OpenStep step = two_shards();
  step.closed[0].busy = 3ms;
  step.closed[1].busy = 2ms;
  step.closed[0].closing = 1ms;
  step.closed[1].closing = 4ms;
  step.closed[0].undecided = 2ms;
  step.closed[1].samples = 40;
  step.closed[0].block_counts = {{2, 5}, {1, 1}};
  step.closed[1].block_counts = {{2, 3}};
  const StepRecord record = summary_of(step).step;
  EXPECT_EQ(record.aggregate, 3ms);
  EXPECT_EQ(record.closing, 4ms);
  EXPECT_EQ(record.undecided, 2ms);
  EXPECT_EQ(record.samples, 40u);
  ASSERT_EQ(record.loads.size(), 2u);
  EXPECT_EQ(record.loads[1].busy, 2ms);
  ASSERT_EQ(record.block_counts.size(), 2u);
  EXPECT_EQ(record.block_counts[0].contributors, 1u);
  EXPECT_EQ(record.block_counts[1].contributors, 2u);
  EXPECT_EQ(record.block_counts[1].blocks, 8u);
}

TEST(StepSummary, AShardThatUsedNothingCountsOnlyIfGradientsWereRefused) {
  OpenStep step = two_shards();
  step.closed[1].samples = 0;
  EXPECT_EQ(summary_of(step).step.samples, 50u) << "it had no blocks to update";
  step.closed[1].refused = {{0, 3}, {0, 4}};
  const StepSummary refused = summary_of(step);
  EXPECT_EQ(refused.step.samples, 0u);
  EXPECT_EQ(refused.step.refused, 1u) << "workers, not blocks";
  EXPECT_EQ(refused.refused.size(), 2u);
  step.closed[0].samples = 0;
  step.closed[1].refused.clear();
  EXPECT_EQ(summary_of(step).step.samples, 0u) << "no shard has any";
}

TEST(StepSummary, AddsUpAWorkersOutliersAndNamesItsWorstBlock) {
  OpenStep step = two_shards();
  step.closed[0].outliers = {{.worker = 1, .block = 2, .blocks = 3, .ratio = 8.0, .used = true},
                             {.worker = 2, .block = 4, .blocks = 1, .ratio = 9.0, .used = true}};
  step.closed[1].outliers = {{.worker = 0, .block = 9, .blocks = 1, .ratio = 5.0, .used = true},
                             {.worker = 1, .block = 7, .blocks = 2, .ratio = 11.0, .used = false},
                             {.worker = 2, .block = 5, .blocks = 1, .ratio = 3.0, .used = true}};
  const StepSummary summary = summary_of(step);
  ASSERT_EQ(summary.outliers.size(), 3u);
  EXPECT_EQ(summary.outliers[0].worker, 0u);
  EXPECT_EQ(summary.outliers[1].blocks, 5u);
  EXPECT_EQ(summary.outliers[1].block, 7u);
  EXPECT_DOUBLE_EQ(summary.outliers[1].ratio, 11.0);
  EXPECT_FALSE(summary.outliers[1].used) << "one shard dropped it";
  EXPECT_EQ(summary.outliers[2].block, 4u);
  EXPECT_DOUBLE_EQ(summary.outliers[2].ratio, 9.0) << "the first shard had the worst";
  ASSERT_EQ(summary.step.outliers.size(), 3u);
  EXPECT_EQ(summary.step.outliers[1].blocks, 5u);
  EXPECT_DOUBLE_EQ(summary.step.loss, 1.0) << "its loss does not count";
}

TEST(StepSummary, AveragesFreshnessOverTheGradientsThatWereUsed) {
  OpenStep step = two_shards();
  step.reports[0].blocks = 4;
  step.reports[0].fresh = 4;
  step.reports[1].blocks = 4;
  step.reports[1].fresh = 2;
  step.reports[1].staleness_sum = 6;
  step.reports[1].staleness_max = 5;
  step.reports[2].blocks = 4;  // a straggler
  const StepRecord record = summary_of(step).step;
  EXPECT_DOUBLE_EQ(record.fresh_mean, 0.75);
  EXPECT_DOUBLE_EQ(record.fresh_min, 0.5);
  EXPECT_DOUBLE_EQ(record.staleness_mean, 0.75);
  EXPECT_EQ(record.staleness_max, 5u);
}

TEST(StepSummary, ARoundHasTheLossOfItsOwnReports) {
  OpenStep step = two_shards();
  step.round = {{.samples = 10, .loss = 4.0}, {.samples = 10, .loss = 6.0}};
  const StepSummary summary = summary_of(step, StepMode::kAsynchronous);
  EXPECT_DOUBLE_EQ(summary.step.loss, 5.0);
  ASSERT_EQ(summary.arrivals.size(), 2u) << "no worker is censored";
  EXPECT_EQ(summary.arrivals[1].worker, 1u);
  EXPECT_TRUE(std::isnan(summary.step.fresh_mean));
}

}  // namespace
}  // namespace drover

// A cell is measured from its run file alone: time from the opening of step 0, idle time from the
// workers' computing times.
#include "experiment/cell_measures.h"

#include <gtest/gtest.h>

#include "store/test_run.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Target kTarget{TargetKind::kAccuracy, 0.9};

class CellMeasuresTest : public ::testing::Test {
 protected:
  // Steps of 10 s, the first at 5 s. Two workers compute for 4 and 8 s and arrive, a third computes
  // until the step closes, and a fourth arrives late.
  void write_steps(RunWriter& writer, Step steps) {
    for (Step step = 0; step < steps; ++step) {
      DROVER_EXPECT_OK(writer.on_step(
          StepRecord{.step = step, .at = 5s + step * 10s, .elapsed = 10s, .contributors = 2},
          {{.step = step, .worker = 0, .run_time = 9s, .compute = 4s},
           {.step = step, .worker = 1, .run_time = 10s, .compute = 8s},
           {.step = step, .worker = 2, .run_time = 10s, .censored = true},
           {.step = step, .worker = 3, .run_time = 10s, .censored = true}}));
      DROVER_EXPECT_OK(
          writer.on_late_arrival({.step = step, .worker = 3, .run_time = 12s, .compute = 1s}));
    }
  }
  CellMeasures measured(const Target& target = kTarget) {
    auto cell = measure(reader_at(path_), target);
    if (!cell) ADD_FAILURE() << cell.error().message;
    return cell.value();
  }

  TempFolder folder_;
  const std::string path_ = folder_.file("run.db");
};

TEST_F(CellMeasuresTest, TimeIsFromTheFirstOpeningToTheFirstEvaluationThatReachesTheTarget) {
  {
    auto writer = writer_at(path_);
    write_steps(*writer, 6);
    DROVER_EXPECT_OK(
        writer->on_evaluation({.version = 2, .at = 26s, .loss = 0.5, .accuracy = 0.8}));
    DROVER_EXPECT_OK(
        writer->on_evaluation({.version = 4, .at = 47s, .loss = 0.3, .accuracy = 0.9}));
    DROVER_EXPECT_OK(
        writer->on_evaluation({.version = 6, .at = 66s, .loss = 0.2, .accuracy = 0.95}));
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted, .elapsed = 60s}));
  }
  const CellMeasures cell = measured();
  EXPECT_FALSE(cell.failed);
  EXPECT_TRUE(cell.reached);
  EXPECT_DOUBLE_EQ(cell.seconds, 42.0);
  EXPECT_DOUBLE_EQ(cell.trained_seconds, 40.0);
  EXPECT_EQ(cell.steps, 4u);
  EXPECT_EQ(cell.gradients, 8u) << "only those of the steps before it";
  EXPECT_DOUBLE_EQ(cell.contributors_mean, 2.0);
  EXPECT_DOUBLE_EQ(cell.best.value(), 0.95);
  // Of 4 x 10 s per step, worker 0 waits for 6 s and worker 1 for 2 s.
  EXPECT_DOUBLE_EQ(cell.idle_share.value(), 8.0 / 40.0);

  const CellMeasures loss = measured({TargetKind::kLoss, 0.25});
  EXPECT_TRUE(loss.reached);
  EXPECT_EQ(loss.steps, 6u);
  EXPECT_DOUBLE_EQ(loss.seconds, 61.0);
  EXPECT_DOUBLE_EQ(loss.best.value(), 0.2);
}

TEST_F(CellMeasuresTest, ReportsTheBestValueIfTheTargetIsNotReached) {
  {
    auto writer = writer_at(path_);
    write_steps(*writer, 3);
    DROVER_EXPECT_OK(writer->on_evaluation({.version = 2, .at = 26s, .accuracy = 0.85}));
    DROVER_EXPECT_OK(writer->on_evaluation({.version = 3, .at = 36s, .accuracy = 0.8}));
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted, .elapsed = 30s}));
  }
  const CellMeasures cell = measured();
  EXPECT_FALSE(cell.reached);
  EXPECT_FALSE(cell.failed);
  EXPECT_DOUBLE_EQ(cell.best.value(), 0.85);
  EXPECT_EQ(cell.steps, 3u);
  EXPECT_EQ(cell.gradients, 6u);
  EXPECT_DOUBLE_EQ(cell.seconds, 30.0);
}

TEST_F(CellMeasuresTest, ReportsWhyARunFailed) {
  {
    auto writer = writer_at(path_);
    DROVER_EXPECT_OK(
        writer->on_end({.outcome = RunOutcome::kFailed, .reason = "training diverged"}));
  }
  const CellMeasures cell = measured();
  EXPECT_TRUE(cell.failed);
  EXPECT_EQ(cell.reason, "training diverged");
  EXPECT_FALSE(cell.reached);
  EXPECT_FALSE(cell.best.has_value());
  EXPECT_FALSE(cell.idle_share.has_value());
}

TEST_F(CellMeasuresTest, AsynchronousRunsHaveNoIdleShare) {
  {
    RunHeader header = sample_header();
    header.settings = {{"policy", "async"}};
    auto writer = std::move(RunWriter::create(path_, header, {})).value();
    write_steps(*writer, 3);
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted, .elapsed = 30s}));
  }
  EXPECT_FALSE(measured().idle_share.has_value());
}

TEST_F(CellMeasuresTest, WorkersWithoutComputingTimesDoNotCountForTheIdleShare) {
  {
    auto writer = writer_at(path_);
    DROVER_EXPECT_OK(
        writer->on_step(StepRecord{.step = 0, .at = 0s, .elapsed = 10s, .contributors = 2},
                        {{.step = 0, .worker = 0, .run_time = 9s},
                         {.step = 0, .worker = 1, .run_time = 10s, .compute = 5s}}));
    DROVER_EXPECT_OK(writer->on_end({.outcome = RunOutcome::kCompleted, .elapsed = 10s}));
  }
  EXPECT_DOUBLE_EQ(measured().idle_share.value(), 0.5);
}

}  // namespace
}  // namespace drover

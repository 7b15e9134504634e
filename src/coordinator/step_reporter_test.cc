#include "coordinator/step_reporter.h"

#include <gtest/gtest.h>

#include <utility>

namespace drover {
namespace {

using namespace std::chrono_literals;

class StepReporterTest : public ::testing::Test {
 protected:
  static StepSummary summary(Step step, uint32_t contributors = 2) {
    StepSummary summary;
    summary.step.step = step;
    summary.step.contributors = contributors;
    summary.step.samples = 8;
    summary.step.learning_rate = 0.5;
    return summary;
  }
  // Gradients arrived and none was usable.
  static StepSummary empty(Step step) {
    StepSummary each = summary(step, 0);
    each.step.refused = 2;
    return each;
  }
  void report(StepSummary each, RateRule rule = RateRule::kNone) {
    std::vector<StepSummary> all;
    all.push_back(std::move(each));
    reporter_.report(std::move(all), blocks_, rule, 7s, out_);
  }
  template <typename Record>
  std::vector<Record> reported() const {
    std::vector<Record> found;
    for (const RunRecord& each : out_) {
      if (const auto* record = std::get_if<Record>(&each)) found.push_back(*record);
    }
    return found;
  }

  const BlockMap blocks_{Layout({{"a", 64}, {"b", 70'000}}), 2, kBlockFloats};
  StepReporter reporter_{{.full_samples = 16}};
  std::vector<RunRecord> out_;
};

TEST_F(StepReporterTest, RecordsStepsInOrder) {
  std::vector<StepSummary> both;
  both.push_back(summary(3));
  both.push_back(summary(4));
  reporter_.report(std::move(both), blocks_, RateRule::kNone, 7s, out_);
  const auto steps = reported<StepSummary>();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(out_.size(), 2u);
  EXPECT_EQ(steps[0].step.step, 3u);
  EXPECT_EQ(steps[1].step.step, 4u);
  EXPECT_EQ(steps[0].step.learning_rate, 0.5);
}

TEST_F(StepReporterTest, TheRateFollowsTheSamplesOfTheUpdate) {
  report(summary(0), RateRule::kLinear);
  EXPECT_EQ(reported<StepSummary>().at(0).step.learning_rate, 0.25) << "8 of 16 samples";
}

TEST_F(StepReporterTest, InAnAsynchronousRunTheRateIsThatOfOneGradient) {
  StepReporter reporter({.full_samples = 16, .asynchronous = true});
  reporter.report({summary(0, 4), summary(1, 0)}, blocks_, RateRule::kLinear, 7s, out_);
  EXPECT_EQ(reported<StepSummary>().at(0).step.learning_rate, 0.0625) << "2 of 16 samples";
  EXPECT_EQ(reported<StepSummary>().at(1).step.learning_rate, 0.25);
}

TEST_F(StepReporterTest, RefusedGradientsAreEventsAfterTheirStep) {
  StepSummary each = summary(5);
  each.refused = {{.worker = 3, .block = 1}, {.worker = 2, .block = 0}, {.worker = 3, .block = 0}};
  report(each);
  ASSERT_EQ(out_.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<StepSummary>(out_[0]));
  const EventRecord first{.at = 7s,
                          .step = 5,
                          .peer = Peer{Role::kWorker, 2},
                          .payload = event::Refused{.tensor = "a"}};
  const EventRecord second{.at = 7s,
                           .step = 5,
                           .peer = Peer{Role::kWorker, 3},
                           .payload = event::Refused{.tensor = "b"}};
  EXPECT_EQ(reported<EventRecord>(), (std::vector{first, second})) << "one for each worker";
}

TEST_F(StepReporterTest, ReportsTheFirstTenthAndHundredthOutlier) {
  for (Step step = 0; step < 100; ++step) {
    StepSummary each = summary(step);
    each.outliers = {{.worker = 1, .block = 1, .blocks = 2, .ratio = 9.0, .used = true}};
    report(each);
  }
  const auto events = reported<EventRecord>();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].payload,
            EventPayload(event::Outlier{.ratio = 9.0, .tensor = "b", .used = true, .times = 1}));
  EXPECT_EQ(events[0].peer, (Peer{Role::kWorker, 1}));
  EXPECT_EQ(events[1].as<event::Outlier>()->times, 10u);
  EXPECT_EQ(events[1].step, 9u);
  EXPECT_EQ(events[2].as<event::Outlier>()->times, 100u);
  EXPECT_TRUE(std::holds_alternative<EventRecord>(out_[0])) << "before the record of its step";
}

TEST_F(StepReporterTest, CountsOutliersPerWorker) {
  StepSummary each = summary(0);
  each.outliers = {{.worker = 1}, {.worker = 2}};
  report(each);
  EXPECT_EQ(reported<EventRecord>().size(), 2u);
}

TEST_F(StepReporterTest, EmptyStepsInARowAreDivergence) {
  Step step = 0;
  for (uint32_t i = 1; i < StepReporter::kEmptyStepsMax; ++i) report(empty(step++));
  report(summary(step++));
  for (uint32_t i = 1; i < StepReporter::kEmptyStepsMax; ++i) report(empty(step++));
  EXPECT_FALSE(reporter_.diverged());
  report(empty(step));
  EXPECT_TRUE(reporter_.diverged());
}

TEST_F(StepReporterTest, RemembersDivergenceInTheMiddleOfAReport) {
  std::vector<StepSummary> all;
  for (Step step = 0; step < StepReporter::kEmptyStepsMax; ++step) all.push_back(empty(step));
  all.push_back(summary(StepReporter::kEmptyStepsMax));
  reporter_.report(std::move(all), blocks_, RateRule::kNone, 7s, out_);
  EXPECT_TRUE(reporter_.diverged());
}

TEST_F(StepReporterTest, AStepWithoutGradientsIsNotEmpty) {
  for (Step step = 0; step < 9; ++step) report(summary(step, 0));
  EXPECT_FALSE(reporter_.diverged()) << "no gradient arrived";
}

TEST_F(StepReporterTest, WithPartialPullsSomeBlocksAreEnough) {
  StepSummary each = empty(0);
  each.step.block_counts = {{.contributors = 0, .blocks = 1}, {.contributors = 1, .blocks = 1}};
  StepReporter partial({.full_samples = 16, .partial_pull = true});
  for (Step step = 0; step < 9; ++step) {
    each.step.step = step;
    partial.report({each}, blocks_, RateRule::kNone, 7s, out_);
    report(each);
  }
  EXPECT_FALSE(partial.diverged());
  EXPECT_TRUE(reporter_.diverged()) << "without partial pulls a gradient is used as a whole";
  for (Step step = 9; step < 12; ++step)
    partial.report({empty(step)}, blocks_, RateRule::kNone, 7s, out_);
  EXPECT_TRUE(partial.diverged());
}

}  // namespace
}  // namespace drover

#include "sim/late_report_checker.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

// A shard with two blocks, of which workers 0 and 1 are members.
class LateReportCheckerTest : public ::testing::Test {
 protected:
  std::string close(Step step, std::vector<StepClosed::Arrival> arrivals,
                    std::vector<StepClosed::Arrival> late = {}) {
    StepClosed closed{.step = step};
    closed.arrivals = std::move(arrivals);
    closed.late = std::move(late);
    return book_.on_closed(0, closed, 2, there_);
  }
  static StepClosed::Arrival arrival(WorkerId worker, Step step) {
    return {.worker = worker, .run_time = {}, .step = step};
  }
  void answer(Step step, int blocks) {
    for (int block = 0; block < blocks; ++block) book_.on_answer(0, step, 1);
  }

  ExpectedMembers::AtShard there_{.members = {{0, 0}, {1, 0}}};
  LateReportChecker book_;
};

TEST_F(LateReportCheckerTest, ALateWorkerIsReportedWhenItsGradientIsComplete) {
  EXPECT_EQ(close(0, {arrival(0, 0)}), "");
  answer(0, 1);
  EXPECT_EQ(close(1, {arrival(0, 1), arrival(1, 1)}), "") << "a block is missing";
  answer(0, 1);
  EXPECT_EQ(close(2, {arrival(0, 2), arrival(1, 2)}, {arrival(1, 0)}), "");
}

TEST_F(LateReportCheckerTest, FindsAMissingReport) {
  close(0, {arrival(0, 0)});
  answer(0, 2);
  EXPECT_EQ(close(1, {arrival(0, 1), arrival(1, 1)}),
            "shard 0 does not report how long worker 1 took in step 0");
}

TEST_F(LateReportCheckerTest, ALostWorkerIsNotReported) {
  close(0, {arrival(0, 0)});
  answer(0, 2);
  book_.on_lost(0, 1);
  EXPECT_EQ(close(1, {arrival(0, 1), arrival(1, 1)}), "");
}

TEST_F(LateReportCheckerTest, FindsRepeatedReports) {
  close(0, {arrival(0, 0)}, {arrival(1, 0)});
  answer(0, 2);
  EXPECT_EQ(close(1, {arrival(0, 1), arrival(1, 1)}, {arrival(1, 0)}), "");
  EXPECT_EQ(close(2, {arrival(0, 2), arrival(1, 2)}, {arrival(1, 0)}),
            "shard 0 reports repeatedly how long worker 1 took in step 0");
}

}  // namespace
}  // namespace drover

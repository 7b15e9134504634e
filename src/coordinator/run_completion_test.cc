#include "coordinator/run_completion.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;
using Obligation = RunCompletion::Obligation;
using Ids = std::vector<WorkerId>;

class RunCompletionTest : public ::testing::Test {
 protected:
  RunCompletionTest() {
    completion_.on_training_began(10s);
    completion_.on_training_ended(100s);
  }
  std::vector<Obligation> outstanding() const {
    std::vector<Obligation> list;
    for (const auto& each : completion_.outstanding(unfinished_)) list.push_back(each.obligation);
    return list;
  }

  RunCompletion completion_;
  RunCompletion::Unfinished unfinished_;
};

TEST_F(RunCompletionTest, NothingIsWaitedForWithoutObligations) {
  EXPECT_TRUE(outstanding().empty());
  EXPECT_FALSE(completion_.deadline(unfinished_));
  EXPECT_FALSE(completion_.expire(unfinished_, 1000s));
}

TEST_F(RunCompletionTest, EachObligationHasItsDeadline) {
  unfinished_ = {.reports = true};
  EXPECT_EQ(completion_.deadline(unfinished_), 100s + RunCompletion::kReportPatience);
  unfinished_ = {.leaving = true};
  EXPECT_EQ(completion_.deadline(unfinished_), 100s + RunCompletion::kLeavingPatience);
  unfinished_ = {.checkpoint = true};
  EXPECT_EQ(completion_.deadline(unfinished_), 100s + RunCompletion::kCheckpointPatience);
  unfinished_ = {.evaluator_lost = 50s};
  EXPECT_EQ(completion_.deadline(unfinished_), 100s + RunCompletion::kEvaluatorPatience);
  unfinished_ = {.evaluator_lost = 130s};
  EXPECT_EQ(completion_.deadline(unfinished_), 130s + RunCompletion::kEvaluatorPatience)
      << "it was lost after training had ended";
}

TEST_F(RunCompletionTest, ObligationsExpireOneAtATimeInTheirOrder) {
  unfinished_ = {.reports = true, .leaving = true, .checkpoint = true, .evaluator_lost = 50s};
  EXPECT_EQ(outstanding(), (std::vector{Obligation::kReports, Obligation::kLeaving,
                                        Obligation::kCheckpoint, Obligation::kEvaluation}));
  EXPECT_FALSE(completion_.expire(unfinished_, 101s - 1ns));
  const TimePoint late = 100s + RunCompletion::kCheckpointPatience;
  EXPECT_EQ(completion_.expire(unfinished_, late), Obligation::kReports);
  EXPECT_EQ(completion_.deadline(unfinished_), 108s);
  EXPECT_EQ(completion_.expire(unfinished_, late), Obligation::kLeaving);
  EXPECT_EQ(completion_.deadline(unfinished_), late);
  EXPECT_EQ(completion_.expire(unfinished_, late), Obligation::kCheckpoint);
  EXPECT_EQ(completion_.expire(unfinished_, late), Obligation::kEvaluation);
  EXPECT_TRUE(outstanding().empty());
  EXPECT_TRUE(completion_.is_waived(Obligation::kReports));
}

TEST_F(RunCompletionTest, LaterObligationsDoNotExpireBeforeEarlierOnes) {
  unfinished_ = {.checkpoint = true, .evaluator_lost = 50s};
  EXPECT_FALSE(completion_.expire(unfinished_, 100s + RunCompletion::kEvaluatorPatience));
  EXPECT_FALSE(completion_.is_waived(Obligation::kEvaluation));
  unfinished_.checkpoint = false;
  EXPECT_EQ(completion_.expire(unfinished_, 100s + RunCompletion::kEvaluatorPatience),
            Obligation::kEvaluation);
}

TEST_F(RunCompletionTest, ObligationsMayBeMetInAnyOrder) {
  unfinished_ = {.reports = true, .checkpoint = true};
  unfinished_.checkpoint = false;
  EXPECT_EQ(outstanding(), std::vector{Obligation::kReports});
  unfinished_.reports = false;
  EXPECT_TRUE(outstanding().empty());
  EXPECT_FALSE(completion_.is_waived(Obligation::kReports)) << "it was met";
}

TEST_F(RunCompletionTest, AConnectedEvaluatorHasNoDeadline) {
  unfinished_ = {.evaluator_here = true};
  EXPECT_EQ(outstanding(), std::vector{Obligation::kEvaluation});
  EXPECT_FALSE(completion_.deadline(unfinished_));
  EXPECT_FALSE(completion_.expire(unfinished_, 100h));
  completion_.on_last_evaluated();
  EXPECT_TRUE(outstanding().empty());
}

TEST_F(RunCompletionTest, AnEvaluatorThatReturnsJustInTimeHasNoDeadline) {
  unfinished_ = {.evaluator_lost = 50s};
  EXPECT_EQ(completion_.expire(unfinished_, 120s), Obligation::kEvaluation);
  EXPECT_TRUE(outstanding().empty());
  unfinished_ = {.evaluator_here = true};
  EXPECT_EQ(outstanding(), std::vector{Obligation::kEvaluation});
}

TEST(RunCompletion, TheLastVersionMayBeEvaluatedBeforeTrainingEnds) {
  RunCompletion completion;
  completion.on_last_evaluated();
  completion.on_training_ended(100s);
  EXPECT_TRUE(completion.outstanding({.evaluator_here = true}).empty());
  EXPECT_TRUE(completion.outstanding({.evaluator_lost = 50s}).empty());
  EXPECT_EQ(completion.outstanding({.reports = true, .evaluator_here = true}).size(), 1u);
}

TEST_F(RunCompletionTest, WorkersWithoutPendingReportsAreDismissedOnce) {
  EXPECT_EQ(completion_.dismiss({0, 1, 3}, {1}), (Ids{0, 3}));
  EXPECT_EQ(completion_.dismiss({0, 1, 3}, {1}), Ids{});
  EXPECT_EQ(completion_.dismiss({0, 1, 3}, {}), Ids{1});
}

TEST_F(RunCompletionTest, MeasuresTheDurationOfTraining) {
  EXPECT_EQ(completion_.trained(), 90s);
  RunCompletion never;
  never.on_training_ended(100s);
  EXPECT_EQ(never.trained(), 0s);
}

}  // namespace
}  // namespace drover

#include "sim/record_checker.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

DecisionRecord decision(Step step, Duration at = {}) {
  return {.step = step, .cutoff = 1, .alive = 2, .reason = "all", .at = at};
}

TEST(RecordChecker, StepsAreDecidedInOrder) {
  RecordChecker book;
  EXPECT_EQ(book.on_decision(decision(0)), "");
  EXPECT_EQ(book.on_decision(decision(0, 1s)), "") << "a revision within the step";
  EXPECT_EQ(book.on_decision(decision(1)), "");
  EXPECT_EQ(book.on_decision(decision(1)), "steps are decided out of order");
}

TEST(RecordChecker, ADecisionWaitsForSomeOfTheLiveWorkers) {
  DecisionRecord all = decision(0);
  all.cutoff = 3;
  EXPECT_EQ(RecordChecker().on_decision(all), "step 0 waits for 3 of 2 workers");
  DecisionRecord none = decision(0);
  none.reason.clear();
  EXPECT_EQ(RecordChecker().on_decision(none), "a decision has no reason");
}

TEST(RecordChecker, StepsAreRecordedInOrder) {
  RecordChecker book;
  EXPECT_EQ(book.on_step({.step = 0}), "");
  EXPECT_EQ(book.on_step({.step = 2}), "step 2 is recorded out of order");
  book.restart(7);
  EXPECT_EQ(book.recorded(), 7u);
  EXPECT_EQ(book.on_step({.step = 7}), "");
}

TEST(RecordChecker, AStepRecordsAllItsWorkers) {
  RecordChecker book;
  book.on_decision(decision(0));
  EXPECT_EQ(book.on_arrivals({.step = 0}, {{.worker = 0}}),
            "step 0 began with 2 workers, but 1 are recorded");
}

TEST(RecordChecker, ALateRunTimeIsRecordedOnceAndNotBelowItsBound) {
  RecordChecker book;
  book.on_decision(decision(0));
  const ArrivalRecord cut{.step = 0, .worker = 1, .run_time = 2s, .censored = true};
  EXPECT_EQ(book.on_arrivals({.step = 0}, {{.worker = 0}, cut}), "");
  RecordChecker other = book;
  EXPECT_EQ(book.on_late_arrival({.step = 0, .worker = 1, .run_time = 3s}), "");
  EXPECT_EQ(book.on_late_arrival({.step = 0, .worker = 1, .run_time = 3s}),
            "worker 1's run-time in step 0 is recorded twice");
  EXPECT_EQ(other.on_late_arrival({.step = 0, .worker = 1, .run_time = 1s}),
            "worker 1 took more than 2.000 s in step 0, but is then recorded with 1.000 s");
}

}  // namespace
}  // namespace drover

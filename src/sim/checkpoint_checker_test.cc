#include "sim/checkpoint_checker.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

CheckpointChecker book(bool writes_fail = false) {
  return CheckpointChecker(
      {.steps = 6, .every = 2, .writes_fail = writes_fail, .recovers = true, .restarts_most = 2});
}

const RunEnd kEnd{.outcome = RunOutcome::kCompleted, .cause = EndCause::kCompleted};

TEST(CheckpointChecker, RefusesCheckpointsThatAreNotDue) {
  CheckpointChecker three({.steps = 7, .every = 3});
  EXPECT_EQ(three.on_checkpoint(3), "");
  EXPECT_EQ(three.on_checkpoint(7), "") << "the checkpoint of the last step is always due";
  EXPECT_EQ(three.on_checkpoint(4), "there is a checkpoint of step 4, which was not due");
}

TEST(CheckpointChecker, ARestartContinuesFromTheNewestCheckpoint) {
  CheckpointChecker kept = book();
  kept.on_checkpoint(2);
  EXPECT_EQ(kept.on_restart({.version = 2}, 3), "");
  CheckpointChecker lost = book();
  lost.on_checkpoint(2);
  EXPECT_EQ(lost.on_restart({.version = 0}, 3),
            "the run continues from step 0 (a checkpoint), but should from 2");
}

TEST(CheckpointChecker, ARestartDiscardsNewerCheckpoints) {
  CheckpointChecker kept = book();
  kept.on_checkpoint(2);
  kept.on_checkpoint(4);
  EXPECT_EQ(kept.on_restart({.version = 3, .from_memory = true}, 3), "");
  EXPECT_EQ(kept.on_restart({.version = 2}, 3), "");
}

TEST(CheckpointChecker, ARestartFromMemoryLosesNoStep) {
  EXPECT_EQ(book().on_restart({.version = 3, .from_memory = true}, 3), "");
  EXPECT_NE(book().on_restart({.version = 2, .from_memory = true}, 3), "");
  EXPECT_EQ(book().on_restart({.version = 5, .from_memory = true}, 6), "")
      << "the evaluation of the last step is missing";
}

TEST(CheckpointChecker, ARestartUsesAStandbyThatHadAllSteps) {
  EXPECT_EQ(book().on_restart({.version = 0, .covered_by_standby = true}, 3),
            "steps are lost with a shard, though its standby had all of them");
}

TEST(CheckpointChecker, CountsRestarts) {
  CheckpointChecker two = book();
  EXPECT_EQ(two.on_restart({}, 0), "");
  EXPECT_EQ(two.on_restart({}, 0), "");
  EXPECT_EQ(two.on_restart({}, 0), "the run restarts for the 3th time");
  EXPECT_EQ(CheckpointChecker({.steps = 6}).on_restart({}, 0),
            "a run restarts that does not recover");
}

TEST(CheckpointChecker, ACompletedRunHasTheFirstAndTheLastCheckpoint) {
  CheckpointChecker none = book();
  EXPECT_EQ(none.on_run_over(kEnd), "the last step has no checkpoint");
  none.on_checkpoint(6);
  EXPECT_EQ(none.on_run_over(kEnd), "step 2 has no checkpoint");
  none.on_checkpoint(2);
  EXPECT_EQ(none.on_run_over(kEnd), "") << "the checkpoint of step 4 may have been skipped";
}

TEST(CheckpointChecker, RequiresNoneIfWritesFailOrTheRunFailed) {
  EXPECT_EQ(book(true).on_run_over(kEnd), "");
  EXPECT_EQ(book().on_run_over({.outcome = RunOutcome::kFailed, .cause = EndCause::kServerLost}),
            "");
}

}  // namespace
}  // namespace drover

#include "node/run_recorder.h"

#include <gtest/gtest.h>

#include "node/clock.h"
#include "node/test_observer.h"

namespace drover {
namespace {

class Observer : public Silent<RunObserver> {
 public:
  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_step(const StepRecord&, const std::vector<ArrivalRecord>&) override { return done(); }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }
  Status on_evaluation(const EvaluationRecord&) override { return done(); }
  Status on_event(const EventRecord&) override { return done(); }
  Status on_decision(const DecisionRecord&) override {
    ++decisions;
    return fails ? Status(system_error("the disk is full")) : done();
  }
  Status on_end(const RunEnd& end) override {
    ends.push_back(end);
    return fails_at_end ? Status(system_error("the disk is full")) : done();
  }
  bool fails = false;
  bool fails_at_end = false;
  int decisions = 0;
  std::vector<RunEnd> ends;
};

class RunRecorderTest : public ::testing::Test {
 protected:
  RunRecorder made(std::optional<TimePoint> training_since = {}) {
    return {{&first_, &second_}, training_since, [this](const std::string& why) {
              failures_.push_back(why);
            }};
  }
  Observer first_;
  Observer second_;
  std::vector<std::string> failures_;
};

TEST_F(RunRecorderTest, PassesRecordsToEveryObserver) {
  RunRecorder recorder = made();
  EXPECT_FALSE(recorder.training_since());
  recorder.record(DecisionRecord{});
  EXPECT_TRUE(recorder.training_since());
  EXPECT_EQ(first_.decisions + second_.decisions, 2);
  recorder.note_memory({Role::kWorker, 0}, 17);
  recorder.record_end({.outcome = RunOutcome::kCompleted});
  ASSERT_EQ(second_.ends.size(), 1u);
  ASSERT_EQ(second_.ends[0].memory_bytes.size(), 1u);
  EXPECT_EQ(second_.ends[0].memory_bytes[0].second, 17u);
  EXPECT_EQ(recorder.end().outcome, RunOutcome::kCompleted);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(RunRecorderTest, ARunThatCannotBeRecordedHasFailed) {
  RunRecorder recorder = made();
  first_.fails = true;
  recorder.record(DecisionRecord{});
  recorder.record(DecisionRecord{});
  EXPECT_EQ(failures_, std::vector<std::string>{"the disk is full"}) << "reported once";
  EXPECT_EQ(second_.decisions, 2) << "other observers still get all records";
  recorder.record_end({.outcome = RunOutcome::kCompleted});
  EXPECT_EQ(first_.ends.at(0).outcome, RunOutcome::kFailed);
  EXPECT_EQ(recorder.end().cause, EndCause::kRecordFailed);
}

TEST_F(RunRecorderTest, AFailureToRecordTheEndIsRecordedByTheOtherObservers) {
  RunRecorder recorder = made();
  first_.fails_at_end = true;
  recorder.record_end({.outcome = RunOutcome::kInterrupted});
  EXPECT_EQ(second_.ends.at(0).outcome, RunOutcome::kFailed);
  EXPECT_EQ(recorder.end().outcome, RunOutcome::kFailed);
}

TEST_F(RunRecorderTest, AFailedRunKeepsItsOwnReason) {
  RunRecorder recorder = made();
  recorder.check(system_error("the disk is full"));
  recorder.record_end({.outcome = RunOutcome::kFailed, .reason = "all workers are gone"});
  EXPECT_EQ(recorder.end().reason, "all workers are gone");
}

TEST_F(RunRecorderTest, TheElapsedTimeIncludesEarlierIncarnations) {
  const TimePoint before = clock_now() - std::chrono::seconds(100);
  RunRecorder recorder = made(before);
  EXPECT_EQ(recorder.training_since(), before);
  recorder.record(DecisionRecord{});
  recorder.record_end({.outcome = RunOutcome::kCompleted, .elapsed = std::chrono::seconds(5)});
  EXPECT_GE(recorder.end().elapsed, std::chrono::seconds(105));
}

}  // namespace
}  // namespace drover

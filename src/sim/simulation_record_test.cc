#include "sim/simulation_record.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

// An observer that fails from the first evaluation on.
class FullDisk : public RunObserver {
 public:
  Status on_peer(const PeerRecord&) override { return done(); }
  Status on_decision(const DecisionRecord&) override { return done(); }
  Status on_step(const StepRecord&, const std::vector<ArrivalRecord>&) override { return done(); }
  Status on_late_arrival(const ArrivalRecord&) override { return done(); }
  Status on_abandoned(const AbandonRecord&) override { return done(); }
  Status on_evaluation(const EvaluationRecord&) override { return system_error("disk full"); }
  Status on_event(const EventRecord&) override { return done(); }
  Status on_end(const RunEnd&) override {
    ++ends;
    return done();
  }
  int ends = 0;
};

class SimulationRecordTest : public ::testing::Test {
 protected:
  EventQueue time_;
  FullDisk observer_;
  SimulationRecord record_{{&observer_}, nullptr, time_};
};

TEST_F(SimulationRecordTest, ARunIsOverWhenItsEndIsRecorded) {
  record_.record(EvaluationRecord{});
  EXPECT_FALSE(record_.is_over());
  record_.record(RunEnd{.outcome = RunOutcome::kFailed, .cause = EndCause::kWorkersLost});
  EXPECT_TRUE(record_.is_over());
  EXPECT_EQ(observer_.ends, 1);
}

TEST_F(SimulationRecordTest, ARunThatCannotBeRecordedHasNotCompleted) {
  std::vector<std::string> failures;
  record_.on_failure([&](const std::string& why) { failures.push_back(why); });
  record_.record(EvaluationRecord{});
  record_.record(EvaluationRecord{});
  EXPECT_EQ(failures.size(), 1u) << "only the first failure is reported";
  record_.end({.outcome = RunOutcome::kCompleted, .cause = EndCause::kCompleted});
  const auto result = record_.result();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(result.value().cause, EndCause::kRecordFailed);
}

TEST_F(SimulationRecordTest, TheFirstBreachIsTheResult) {
  record_.breach("one");
  record_.breach("another");
  EXPECT_TRUE(record_.is_over());
  EXPECT_TRUE(record_.is_breached());
  EXPECT_EQ(record_.result().error().message, "one");
}

}  // namespace
}  // namespace drover

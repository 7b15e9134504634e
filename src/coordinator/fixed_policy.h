// FixedPolicy: a policy that decides what a test says, and notes what it is told.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace drover {

struct PolicyNotes {
  Step first = 0;  // that this incarnation begins with
  Choice choice{.cutoff = 1'000, .reason = "fixed"};
  std::vector<Step> decided;
  double noise = 0.0;                        // that was told with the last one
  std::vector<std::vector<WorkerId>> alive;  // in each of those
  std::vector<StepTimes> learned;
  std::vector<std::tuple<Step, WorkerId, double>> late;
  std::optional<Choice> revised;  // what it says when it is asked again
  std::vector<std::pair<double, std::vector<double>>> asked_again;  // when; the arrivals
};

class FixedPolicy : public Policy {
 public:
  // `notes` outlives this.
  explicit FixedPolicy(PolicyNotes* notes) : notes_(notes) {}
  Choice decide(const Situation& situation) override {
    // Before a step is decided, everything before it has been learned.
    EXPECT_EQ(notes_->first + notes_->learned.size(), situation.step);
    notes_->decided.push_back(situation.step);
    notes_->noise = situation.noise;
    notes_->alive.emplace_back(situation.alive.begin(), situation.alive.end());
    return notes_->choice;
  }
  std::optional<Choice> reconsider(const StepProgress& midway) override {
    notes_->asked_again.emplace_back(
        midway.now, std::vector<double>(midway.arrived.begin(), midway.arrived.end()));
    return notes_->revised;
  }
  void learn(const StepTimes& times) override { notes_->learned.push_back(times); }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    EXPECT_LT(step, notes_->learned.size());
    notes_->late.emplace_back(step, worker, seconds);
  }

 private:
  PolicyNotes* notes_;
};

}  // namespace drover

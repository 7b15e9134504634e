// FixedPolicy: a policy for tests with fixed choices. It records its inputs in PolicyNotes.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace drover {

struct PolicyNotes {
  Step first = 0;  // the first step of this incarnation
  Choice choice{.cutoff = 1'000, .reason = "fixed"};
  std::vector<Step> decided;
  double noise = 0.0;                        // of the last decided step
  std::vector<std::vector<WorkerId>> alive;  // in each decided step
  std::vector<StepTimes> learned;
  std::vector<std::tuple<Step, WorkerId, double>> late;
  std::optional<Choice> revised;                                     // the answer to reconsider()
  std::vector<std::pair<double, std::vector<double>>> reconsidered;  // the time, the arrivals
};

class FixedPolicy : public Policy {
 public:
  // `notes` outlives this.
  explicit FixedPolicy(PolicyNotes* notes) : notes_(notes) {}
  Choice decide(const Situation& situation) override {
    // All steps before this one have been learned.
    EXPECT_EQ(notes_->first + notes_->learned.size(), situation.step);
    notes_->decided.push_back(situation.step);
    notes_->noise = situation.noise;
    notes_->alive.emplace_back(situation.alive.begin(), situation.alive.end());
    return notes_->choice;
  }
  std::optional<Choice> reconsider(const StepProgress& progress) override {
    notes_->reconsidered.emplace_back(
        progress.now, std::vector<double>(progress.arrived.begin(), progress.arrived.end()));
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

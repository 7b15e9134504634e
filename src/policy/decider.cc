#include "policy/decider.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace drover {

Decider::Decider(std::unique_ptr<Policy> policy, const DecisionLimits& limits)
    : policy_(std::move(policy)), limits_(limits) {
  DROVER_CHECK(policy_ != nullptr);
}

Choice Decider::decide(const Situation& situation) {
  DROVER_CHECK(!situation.alive.empty());
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  Choice choice = policy_->decide(situation);
  choice.at_least = std::clamp(std::max(choice.at_least, limits_.at_least), 1u, alive);
  choice.cutoff = std::clamp(choice.cutoff, choice.at_least, alive);
  choice.time_limit = std::min(choice.time_limit, limits_.max_wait);
  return choice;
}

void Decider::learn(const StepTimes& times) { policy_->learn(times); }

void Decider::learn_late(Step step, WorkerId worker, double seconds) {
  policy_->learn_late(step, worker, seconds);
}

}  // namespace drover

// ObservedPolicy: a policy that first passes what it learns of each step, and of late workers, to a
// listener.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "policy/policy.h"

namespace drover {

class ObservedPolicy : public Policy {
 public:
  using Listener = std::function<void(const StepTimes&)>;
  using LateListener = std::function<void(Step, WorkerId)>;

  // REQUIRES: policy is not null.
  ObservedPolicy(std::unique_ptr<Policy> policy, Listener listener, LateListener late_listener)
      : policy_(std::move(policy)),
        listener_(std::move(listener)),
        late_listener_(std::move(late_listener)) {}

  Choice decide(const Situation& situation) override { return policy_->decide(situation); }
  std::optional<Choice> reconsider(const StepProgress& midway) override {
    return policy_->reconsider(midway);
  }
  void learn(const StepTimes& times) override {
    listener_(times);
    policy_->learn(times);
  }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    late_listener_(step, worker);
    policy_->learn_late(step, worker, seconds);
  }

 private:
  const std::unique_ptr<Policy> policy_;
  const Listener listener_;
  const LateListener late_listener_;
};

}  // namespace drover

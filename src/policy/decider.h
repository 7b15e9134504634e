// Decider: a policy within the limits that keep every run safe, whatever the policy says.
//
// The cutoff is never more than the workers alive (so that a fixed count cannot hang when the pool
// shrinks), never less than a floor; no step waits longer than a ceiling if the floor is there;
// and, if asked for, nobody is left out for ever.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policy/policy.h"

namespace drover {

struct DecisionLimits {
  uint32_t at_least = 1;           // gradients in every step, as far as workers are alive
  double max_wait = kNoTimeLimit;  // per step
  double min_inclusion = 0.0;      // share of steps each worker should be part of; 0: any
};

class Decider {
 public:
  // REQUIRES: policy is not null.
  Decider(std::unique_ptr<Policy> policy, const DecisionLimits& limits);

  // Always 1 <= at_least <= cutoff <= alive, and a reason.
  Choice decide(const Situation& situation);
  void learn(const StepTimes& times);
  void learn_late(Step step, WorkerId worker, double seconds);

 private:
  const std::unique_ptr<Policy> policy_;
  const DecisionLimits limits_;
  std::vector<uint64_t> left_out_;  // steps in a row, by worker
};

}  // namespace drover

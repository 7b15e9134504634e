// Decider: a policy within the limits that keep every run safe, whatever the policy says.
//
// The cutoff is never more than the workers alive (so that a fixed count cannot hang when the pool
// shrinks), never less than a floor; no step waits longer than a ceiling if the floor is there;
// and, if asked for, nobody is left out for ever, and work is dealt out by speed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "policy/balance.h"
#include "policy/policy.h"

namespace drover {

struct DecisionLimits {
  uint32_t at_least = 1;           // gradients in every step, as far as workers are alive
  double max_wait = kNoTimeLimit;  // per step
  // Share of the steps that each worker should be part of; 0: any. A step that waits for everybody
  // up to max_wait is everybody's chance, whoever misses it.
  double min_inclusion = 0.0;
};

class Decider {
 public:
  // REQUIRES: policy is not null; 0 <= min_inclusion <= 1; max_wait > 0.
  Decider(std::unique_ptr<Policy> policy, const DecisionLimits& limits,
          std::optional<BalanceSettings> balance = std::nullopt);

  // Deals out the work of a step, in which these are expected to take part: how many samples each
  // of them gets, with `batch` in a usual mini-batch. To be called before decide() is asked about
  // that step, once each, in order; as early as workers need to be told.
  std::vector<uint32_t> deal(Step step, std::span<const WorkerId> members, uint32_t batch);
  // The same for replays, whose work is not made of samples.
  void plan_shares(Step step, std::span<const WorkerId> alive);
  // What a worker has to do in a step, in usual mini-batches.
  double share(Step step, WorkerId worker) const;
  bool balances() const { return balancer_.has_value(); }

  // Always 1 <= at_least <= cutoff <= alive, and a reason, which tells when a limit changed the
  // choice. REQUIRES: somebody is alive.
  Choice decide(const Situation& asked);
  // Asks the policy again about the step that decide() was last asked about, within the same
  // limits. REQUIRES: somebody is missing.
  std::optional<Choice> reconsider(const StepProgress& midway);
  void learn(const StepTimes& told);
  void learn_late(Step step, WorkerId worker, double seconds);

 private:
  const std::unique_ptr<Policy> policy_;
  const DecisionLimits limits_;
  std::optional<Balancer> balancer_;
  std::vector<double> shares_;  // of those alive in the step that is decided

  // What a worker has to its credit: every step with it earns 1 - min_inclusion, every step without
  // it costs min_inclusion, so that nobody who is never in debt is part of too few.
  struct Inclusion {
    double credit;
    uint64_t left_out = 0;  // steps in a row
  };
  Inclusion inclusion_of(WorkerId worker) const;
  void hold_within_limits(uint32_t alive, Choice& choice) const;
  std::optional<WorkerId> neglected(std::span<const WorkerId> alive) const;

  std::vector<Inclusion> inclusions_;  // by worker; shorter than there are: the rest are new
  std::optional<Step> waits_for_all_;  // the last step that does for somebody's inclusion
};

}  // namespace drover

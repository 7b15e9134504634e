// Decider: applies safety limits to the choices of a policy, and balances the work.
//
// The cutoff is at most the number of workers alive, so that a fixed count cannot hang when workers
// leave, and at least a minimum. Once the minimum has arrived, no step waits longer than
// `max_wait`. Optionally each worker takes part in a minimum share of the steps, and workers get
// work in proportion to their speed.
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
  uint32_t at_least = 1;           // gradients per step, or the number of workers alive if smaller
  double max_wait = kNoTimeLimit;  // per step
  // Share of the steps that should include each worker; 0: no minimum. A step that waits for all
  // workers up to max_wait counts for each of them, also for one that misses it.
  double min_inclusion = 0.0;
};

class Decider {
 public:
  // REQUIRES: policy is not null; 0 <= min_inclusion <= 1; max_wait > 0.
  Decider(std::unique_ptr<Policy> policy, const DecisionLimits& limits,
          std::optional<BalanceSettings> balance = std::nullopt);

  // Distributes the work of a step among these workers. Returns the number of samples for each,
  // with `batch` samples in a default mini-batch. REQUIRES: called once per step, in order, before
  // decide() for that step.
  std::vector<uint32_t> deal(Step step, std::span<const WorkerId> members, uint32_t batch);
  // The same for a replay, which has no samples.
  void plan_shares(Step step, std::span<const WorkerId> alive);
  // The worker's share of work in a step, in default mini-batches.
  double share(Step step, WorkerId worker) const;
  bool balances() const { return balancer_.has_value(); }

  // ENSURES: 1 <= at_least <= cutoff <= alive; the reason mentions each limit that changed the
  // choice. REQUIRES: at least one worker is alive.
  Choice decide(const Situation& asked);
  // Asks the policy again about the step of the last decide(), within the same limits. REQUIRES: at
  // least one worker has not arrived.
  std::optional<Choice> reconsider(const StepProgress& progress);
  void learn(const StepTimes& observed);
  void learn_late(Step step, WorkerId worker, double seconds);

 private:
  const std::unique_ptr<Policy> policy_;
  const DecisionLimits limits_;
  std::optional<Balancer> balancer_;
  std::vector<double> shares_;  // of those alive in the step that is decided

  // A worker's credit: a step that includes the worker adds 1 - min_inclusion, another one
  // subtracts min_inclusion. A worker whose credit never gets negative takes part in enough steps.
  struct Inclusion {
    double credit;
    uint64_t left_out = 0;  // consecutive steps
  };
  Inclusion inclusion_of(WorkerId worker) const;
  void hold_within_limits(uint32_t alive, TimeUnit unit, Choice& choice) const;
  std::optional<WorkerId> neglected(std::span<const WorkerId> alive) const;

  std::vector<Inclusion> inclusions_;  // by worker; workers beyond its end are new
  std::optional<Step> waits_for_all_;  // the last step that waits for all because of min_inclusion
};

}  // namespace drover

// StepClock: counts a run's steps. It opens each step with a decision, takes the shards' reports
// about it, reviews the decision when the policy asks for that, and closes the step when enough
// shards have closed it.
//
// It is made when the blocks are planned, and used while training is under way. Its methods return
// what the caller has to send or record.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/block_map.h"
#include "coordinator/coordinator_settings.h"
#include "coordinator/dealt_shares.h"
#include "coordinator/early_closings.h"
#include "coordinator/pull_plan.h"
#include "coordinator/run_clock.h"
#include "coordinator/step_decision.h"
#include "coordinator/step_ledger.h"
#include "coordinator/straggler_orders.h"
#include "core/checkpoint_part.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/membership.h"
#include "core/run_record.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class StepClock {
 public:
  // REQUIRES: `policy` is null if and only if the run is asynchronous.
  StepClock(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
            const BlockMap& blocks, RunClock run);

  // The open step; after the last step, the number of steps.
  Step step() const { return step_; }
  bool at_end() const { return step_ >= steps_; }
  // How many steps the run has.
  Step steps() const { return steps_; }
  // The run has fewer. REQUIRES: no shard has closed more; steps >= 1.
  void end_at(Step steps) { steps_ = steps; }
  // All steps are closed on all shards.
  bool is_over() const { return at_end() && ledger_.steps_open_before(steps_) == 0; }

  // Opens step(). REQUIRES: !at_end(); step() is not open; there is at least one member.
  struct Opened {
    DecisionRecord decision;
    std::vector<std::pair<WorkerId, Share>> shares;  // of the next step; only changed ones
    std::optional<event::PullShare> pull;            // from the next step on, if it changes
  };
  Opened open(const Membership& members, double learning_rate, TimePoint now);
  // The decision in force, for each shard.
  std::vector<Decision> decisions(const Membership& members) const;

  // A shard reports arrivals. Returns the record of a new decision, if there is one. Then the
  // caller sends decisions() again.
  std::optional<DecisionRecord> on_arrived(ShardId shard, const Arrived& arrived,
                                           const Membership& members, TimePoint now);
  // When to call on_time(), if ever. It returns the same as on_arrived().
  std::optional<TimePoint> wake_at() const;
  std::optional<DecisionRecord> on_time(const Membership& members, TimePoint now);

  // A shard has closed a step. kNow: the caller calls take(). kEarly: take_early() returns the
  // closing when its step is open.
  EarlyClosings::Turn accept(const ShardClosing& closing);
  std::optional<ShardClosing> take_early() { return closings_.take(step_); }
  void take(const ShardClosing& closing);
  // Whether enough shards have closed step(), so that close() may be called.
  bool may_close() const;
  // Closes step(). Returns the workers that must stop working on it.
  std::vector<WorkerId> close(const Membership& members, TimePoint now);

  void on_report(WorkerId worker, const StepReport& report);
  std::optional<AbandonRecord> on_abandoned(WorkerId worker, const Abandoned& abandoned,
                                            TimePoint now);
  // A worker's connection ended: it is not busy any more, and its next incarnation has no share.
  void forget(WorkerId worker);
  // The worker is no longer a member.
  void on_removed(WorkerId worker) { ledger_.on_lost(worker); }

  // Records, each returned once; see StepLedger.
  std::vector<ArrivalRecord> take_late_records(bool all) { return ledger_.take_late_records(all); }
  std::vector<StepSummary> take_summaries(bool all) { return ledger_.take_summaries(all); }
  std::set<WorkerId> unreported() const { return ledger_.unreported(); }

  double pull_share() const { return pull_.share(); }
  // The noise estimate of the gradients so far, and that before the last closed step.
  SavedNoise noise() const { return ledger_.noise(); }
  const SavedNoise& noise_before() const { return noise_before_; }
  // The digest of the parameters after the last step.
  uint64_t digest() const { return digest_; }
  // The number of entries kept for later.
  size_t pending() const { return closings_.size() + orders_.pending() + ledger_.pending(); }

 private:
  std::vector<WorkerId> available(const Membership& members) const;

  const RunClock run_;
  Step steps_;
  const uint32_t workers_;
  const uint32_t shards_;
  const uint64_t full_samples_;
  const std::map<ShardId, uint32_t> blocks_on_;  // by shard; without shards that have none
  const uint32_t blocks_;
  Step step_;
  StepLedger ledger_;
  EarlyClosings closings_;
  StepDecision decision_;
  StragglerOrders orders_;
  PullPlan pull_;
  DealtShares shares_;
  SavedNoise noise_before_;
  uint64_t digest_ = 0;
};

}  // namespace drover

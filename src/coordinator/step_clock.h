// StepClock: counts a run's steps. It opens each step with a decision, takes the shards' news of
// it, decides again where the policy wants to, and closes the step when enough shards have.
//
// It exists since the blocks were planned, and is used while training is under way. Each answer is
// what the caller has to send or to record.
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
  // REQUIRES: there is a policy if and only if the settings are not `free_running`.
  StepClock(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
            const BlockMap& blocks, RunClock run);

  // The step that is open; after the last: how many there were.
  Step step() const { return step_; }
  bool at_end() const { return step_ == steps_; }
  // All steps are closed on all shards.
  bool is_over() const { return at_end() && ledger_.everything_closed(); }

  // Opens step(). REQUIRES: !at_end(), and it is not open; there is a member.
  struct Opened {
    DecisionRecord decision;
    std::vector<std::pair<WorkerId, Share>> shares;  // of the next step, where they change
    std::optional<event::PullShare> pull;            // from the next step on, where it changes
  };
  Opened open(const Membership& members, double learning_rate, TimePoint now);
  // The decision in force, for each shard.
  std::vector<Decision> decisions(const Membership& members) const;

  // News of arrivals. Returns the record of another decision, if there is one: then decisions()
  // have to be sent.
  std::optional<DecisionRecord> on_arrived(ShardId shard, const Arrived& arrived,
                                           const Membership& members, TimePoint now);
  // When on_time() is to be called, if ever. The answer is as that of on_arrived().
  std::optional<TimePoint> wake_at() const;
  std::optional<DecisionRecord> on_time(const Membership& members, TimePoint now);

  // A shard has closed a step. kNow: call take(). kEarly: take_early() returns it in time.
  EarlyClosings::Turn accept(const ShardClosing& closing);
  std::optional<ShardClosing> take_early() { return closings_.take(step_); }
  void take(const ShardClosing& closing);
  // Whether enough shards have closed step(), so that close() may be called.
  bool may_close() const;
  // Closes step(). Returns the workers that are to stop working on it.
  std::vector<WorkerId> close(const Membership& members, TimePoint now);

  void on_report(WorkerId worker, const StepReport& report);
  std::optional<AbandonRecord> on_abandoned(WorkerId worker, const Abandoned& abandoned,
                                            TimePoint now);
  // A worker's connection ended: it is busy with nothing, and its next incarnation knows no share.
  void forget(WorkerId worker);
  // It is no member any more.
  void on_removed(WorkerId worker) { ledger_.on_lost(worker); }

  // For the record, each once, see StepLedger.
  std::vector<ArrivalRecord> take_late_records(bool all) { return ledger_.take_late_records(all); }
  std::vector<StepSummary> take_summaries(bool all) { return ledger_.take_summaries(all); }
  std::set<WorkerId> unreported() const { return ledger_.unreported(); }

  double pull_share() const { return pull_.share(); }
  // Of the gradients so far, and of those before the last step that has closed.
  SavedNoise noise() const { return ledger_.noise(); }
  const SavedNoise& noise_before() const { return noise_before_; }
  // Of the parameters after the last step.
  uint64_t digest() const { return digest_; }
  // How much is kept for later, in entries.
  size_t pending() const { return closings_.size() + orders_.pending() + ledger_.pending(); }

 private:
  std::vector<WorkerId> available(const Membership& members) const;

  const RunClock run_;
  const Step steps_;
  const uint32_t workers_;
  const uint32_t shards_;
  const uint64_t full_samples_;
  const std::map<ShardId, uint32_t> blocks_on_;  // by shard, of those that have any
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

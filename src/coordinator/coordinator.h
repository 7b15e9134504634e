// Coordinator: keeps membership, the step clock and the decision, as a state machine without I/O.
//
// It is not on the path of the data: shards close steps by themselves, workers start on new
// parameters at once. The coordinator brings everybody together, says how long to wait, learns who
// arrived when, and ends the run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/block_map.h"
#include "coordinator/checkpoint_tally.h"
#include "coordinator/coordinator_output.h"
#include "coordinator/coordinator_settings.h"
#include "coordinator/evaluator_presence.h"
#include "coordinator/live_arrivals.h"
#include "coordinator/model_agreement.h"
#include "coordinator/shard_assignment.h"
#include "coordinator/step_ledger.h"
#include "coordinator/step_reporter.h"
#include "coordinator/straggler_orders.h"
#include "coordinator/worker_roster.h"
#include "core/layout.h"
#include "core/membership.h"
#include "core/run_record.h"
#include "core/time.h"
#include "policy/decider.h"
#include "policy/pull_choice.h"
#include "wire/control.h"

namespace drover {

class Coordinator {
 public:
  // How many steps a shard's news may be ahead of the slowest shard's.
  static constexpr size_t kEarlyMax = 64;
  // How long is waited for whoever keeps in memory what a run that starts over could go on from.
  static constexpr Duration kKeeperAwaited = std::chrono::seconds(5);
  // How long shards may read the checkpoint that a run goes on from.
  static constexpr Duration kReadingMax = std::chrono::minutes(10);

  // REQUIRES: there is a policy, unless workers run freely; then it is null.
  Coordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy, TimePoint now);

  // A peer introduced itself. An error is the reason to refuse it.
  Status on_hello(const Hello& hello, TimePoint now, CoordinatorOutput& out);
  // Somebody wants to be a worker and has no index: the job, and an index that is kept for it for a
  // while. Those that workers have from the start are not given away, even if they are lost: they
  // may come back. An error is the reason why there is none.
  Result<PlaceOffer> offer_place(const std::string& host, TimePoint now);
  // A message from a peer that was admitted. An error means that it breaks the protocol.
  Status on_message(Role role, uint32_t index, const Control& message, TimePoint now,
                    CoordinatorOutput& out);
  // A peer is lost: its connection ended, or its process did before it had joined.
  void on_lost(Role role, uint32_t index, const Loss& why, TimePoint now, CoordinatorOutput& out);
  // The manifest of a checkpoint is written, or why it is not.
  void on_checkpoint_kept(Version version, const Status& kept, Duration took, TimePoint now,
                          CoordinatorOutput& out);
  // The user wants to stop.
  void on_interrupt(TimePoint now, CoordinatorOutput& out);
  // The run cannot go on, for a reason outside (the disk is full).
  void on_failure(EndCause cause, const std::string& why, TimePoint now, CoordinatorOutput& out);
  // When on_time() should be called, if nothing else happens before: a step is to be decided again,
  // or whoever still owes a word is not waited for any longer.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now, CoordinatorOutput& out);
  // Call about every second.
  void on_tick(TimePoint now, CoordinatorOutput& out);

  // How much is kept for later, in entries.
  size_t pending() const {
    return early_.size() + orders_.pending() + (ledger_ ? ledger_->pending() : 0);
  }
  bool ended() const { return phase_ == Phase::kEnded; }
  // What has ended is this coordinator, not the run: another one goes on, from the newest
  // checkpoint.
  bool again() const { return again_; }
  // What it can go on from instead, with no step lost that was closed by all shards, if somebody
  // keeps it in memory for each of them.
  const std::optional<ResumeFrom>& committed() const { return committed_; }
  Step step() const { return step_; }
  const Membership& members() const { return workers_.members(); }

 private:
  enum class Phase : uint8_t { kGathering, kTraining, kEvaluating, kEnded };

  Duration since_start(TimePoint now) const { return settings_.before + (now - started_); }
  Status on_checkpoint_saved(ShardId shard, const CheckpointSaved& saved, TimePoint now,
                             CoordinatorOutput& out);
  void plan_if_settled(TimePoint now, CoordinatorOutput& out);
  void send_plans(CoordinatorOutput& out);
  Address server_of(ShardId shard) const {
    return {servers_.serving(shard), shard, Lane::kControl};
  }
  void lose_server(Role role, ShardId shard, const Loss& why, TimePoint now,
                   CoordinatorOutput& out);
  void note_committed();
  void send_welcome(Role role, uint32_t index, CoordinatorOutput& out);
  void begin_if_ready(TimePoint now, CoordinatorOutput& out);
  void decide(CoordinatorOutput& out);
  void on_arrived(ShardId shard, const Arrived& arrived, TimePoint now, CoordinatorOutput& out);
  void review(TimePoint now, CoordinatorOutput& out);
  void deal_shares(CoordinatorOutput& out);
  Choice free_choice() const;
  uint32_t expected() const;
  void send_decision(CoordinatorOutput& out) const;
  void open_step(TimePoint now, CoordinatorOutput& out);
  Status on_step_closed(ShardId shard, const StepClosed& closed, TimePoint now,
                        CoordinatorOutput& out);
  void take_closing(ShardId shard, const StepClosed& closed, TimePoint now, CoordinatorOutput& out);
  void close_steps(TimePoint now, CoordinatorOutput& out);
  bool enough_closed() const;
  void close_step(Step closed, TimePoint now, CoordinatorOutput& out);
  void choose_pull(TimePoint now, CoordinatorOutput& out);
  void on_evaluated(const Evaluated& evaluated, TimePoint now, CoordinatorOutput& out);
  std::pair<TimePoint, Duration> patience_with_the_missing(TimePoint now);
  RestartPoint restart_point() const;
  std::string missing_without_shards() const;
  Status admit_worker(const Hello& hello, TimePoint now);
  void add_members(TimePoint now, CoordinatorOutput& out);
  void lose_worker(WorkerId worker, const Loss& why, TimePoint now, CoordinatorOutput& out);
  void on_left(WorkerId worker, TimePoint now, CoordinatorOutput& out);
  void forget_worker(WorkerId worker);
  void tell_steps(bool all, TimePoint now, CoordinatorOutput& out);
  void finish_training(TimePoint now, CoordinatorOutput& out);
  void dismiss_workers(TimePoint now, CoordinatorOutput& out);
  std::set<WorkerId> owe_reports() const;
  bool await_leaving() const;
  bool await_evaluator() const;
  void end_if_complete(TimePoint now, CoordinatorOutput& out);
  void end(RunOutcome outcome, EndCause cause, const std::string& reason, TimePoint now,
           CoordinatorOutput& out);
  void start_over(event::RestartCause cause, const std::optional<Peer>& lost,
                  const std::string& why, TimePoint now, CoordinatorOutput& out);
  void dismiss(const Farewell& farewell, CoordinatorOutput& out) const;
  void report(const std::optional<Peer>& peer, EventPayload payload, TimePoint now,
              CoordinatorOutput& out) const;
  void send_farewell(Role role, uint32_t index, const Farewell& farewell,
                     CoordinatorOutput& out) const;

  const CoordinatorSettings settings_;
  const TimePoint started_;
  std::optional<TimePoint> served_since_;      // all shards are ready
  std::optional<TimePoint> some_ready_since_;  // and a worker
  Phase phase_ = Phase::kGathering;
  bool again_ = false;
  std::optional<ResumeFrom> committed_;

  WorkerRoster workers_;
  EvaluatorPresence evaluator_;
  ShardAssignment servers_;
  bool evaluator_given_up_ = false;  // it has not come back by then
  bool evaluated_last_ = false;  // the final parameters; that news may overtake the last closing
  ModelAgreement model_;
  CheckpointTally checkpoints_;
  StepReporter reporter_;
  std::optional<BlockMap> blocks_;  // since the plans were sent
  bool kept_by_nobody_ = false;     // what it was to go on from

  std::optional<StepLedger> ledger_;  // since the blocks are planned
  // Closings of steps that are not open here yet: a quick shard's news may overtake a slow one's.
  struct Early {
    ShardId shard = 0;
    StepClosed closed;
    TimePoint heard{};
  };
  std::vector<Early> early_;
  std::map<ShardId, Step> next_closing_;  // that each shard with blocks tells next
  Step step_ = 0;                         // open now
  std::optional<Decider> decider_;        // none if workers run freely
  Choice choice_;                         // for that step
  std::vector<WorkerId> counted_on_;      // when it was made: members, without those who are busy
  StragglerOrders orders_;
  LiveArrivals arrivals_;             // where the choice wants to be reviewed
  TimePoint opened_{};                // the open step
  std::map<WorkerId, Share> shares_;  // that were last sent
  double pull_share_ = 1.0;           // of blocks, that workers wait for
  std::optional<PullChoice> pull_choice_;
  std::optional<TimePoint> training_began_;
  TimePoint training_ended_{};
  std::set<WorkerId> dismissed_;   // workers, after the last step
  bool leaving_given_up_ = false;  // of those who have not left by then
  bool reports_given_up_ = false;  // of those who have not sent theirs by then
  SavedNoise noise_before_;        // the last step that has closed
  uint64_t digest_ = 0;
};

}  // namespace drover

// Coordinator: keeps membership, the step clock and the decision, as a state machine without I/O.
//
// It is not on the path of the data: shards close steps by themselves, workers start on new
// parameters at once. The coordinator gathers the processes of a run, says how long to wait, learns
// which worker arrived when, and ends the run.
//
// It routes what happens to its parts, each a machine of its own, and turns their answers into
// frames and records. No part knows another:
//   Gathering          how long is waited before training begins
//   ShardAssignment    which process serves which shard
//   WorkerRoster       which workers have joined, are ready, are members; EvaluatorPresence
//   ModelAgreement     what is learned and how
//   StepClock          the steps: decisions, closings, stragglers
//   StepReporter       what is recorded of steps
//   CheckpointTally    which checkpoints are whole
//   RunCompletion      what is waited for after the last step
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/block_map.h"
#include "coordinator/checkpoint_tally.h"
#include "coordinator/coordinator_output.h"
#include "coordinator/coordinator_settings.h"
#include "coordinator/evaluator_presence.h"
#include "coordinator/gathering.h"
#include "coordinator/model_agreement.h"
#include "coordinator/run_clock.h"
#include "coordinator/run_completion.h"
#include "coordinator/shard_assignment.h"
#include "coordinator/step_clock.h"
#include "coordinator/step_reporter.h"
#include "coordinator/worker_roster.h"
#include "core/event.h"
#include "core/membership.h"
#include "core/result.h"
#include "core/time.h"
#include "policy/policy.h"
#include "wire/control.h"

namespace drover {

class Coordinator {
 public:
  // How many steps a shard's news may be ahead of the slowest shard's.
  static constexpr size_t kEarlyMax = EarlyClosings::kEarlyMax;

  // REQUIRES: there is a policy, unless workers run freely; then it is null.
  Coordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy, TimePoint now);

  // A peer introduced itself. An error is the reason to refuse it.
  Status on_hello(const Hello& hello, TimePoint now, CoordinatorOutput& out);
  // A process wants to be a worker and has no index: the job, and an index that is kept for it for
  // a while. An error is the reason why there is none.
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
  // The run cannot continue, for a reason outside (the disk is full).
  void on_failure(EndCause cause, const std::string& why, TimePoint now, CoordinatorOutput& out);
  // When on_time() should be called, if nothing else happens before: a step is to be decided again,
  // or a peer that still owes something is not waited for any longer.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now, CoordinatorOutput& out);
  // Call about every second.
  void on_tick(TimePoint now, CoordinatorOutput& out);

  // How much is kept for later, in entries.
  size_t pending() const { return clock_ ? clock_->pending() : 0; }
  bool ended() const { return phase_ == Phase::kEnded; }
  // What has ended is this coordinator, not the run: another one continues it.
  bool restarts() const { return restarts_; }
  // Then: what it can continue from instead of the newest checkpoint, with no step lost that was
  // closed by all shards, if some process keeps it in memory for each of them.
  const std::optional<ResumeFrom>& committed() const { return committed_; }
  // That is open.
  Step step() const;
  const Membership& members() const { return workers_.members(); }

 private:
  enum class Phase : uint8_t { kGathering, kTraining, kEvaluating, kEnded };

  // Before training.
  Status admit(const Hello& hello, TimePoint now);
  Status admit_worker(const Hello& hello, TimePoint now);
  Status admit_evaluator(const Hello& hello);
  void plan_if_settled(TimePoint now, CoordinatorOutput& out);
  void send_plans(CoordinatorOutput& out);
  void send_welcome(Role role, uint32_t index, CoordinatorOutput& out) const;
  void begin_if_ready(TimePoint now, CoordinatorOutput& out);
  void leave_out_missing(Duration waited, TimePoint now, CoordinatorOutput& out);
  void add_members(TimePoint now, CoordinatorOutput& out);

  // Steps.
  Status on_step_closed(ShardId shard, const StepClosed& closed, TimePoint now,
                        CoordinatorOutput& out);
  void take_closing(const ShardClosing& closing, CoordinatorOutput& out);
  void close_step(TimePoint now, CoordinatorOutput& out);
  void open_step(TimePoint now, CoordinatorOutput& out);
  void send_decisions(CoordinatorOutput& out) const;
  void redecide(std::optional<DecisionRecord> again, CoordinatorOutput& out) const;
  void on_step_report(WorkerId worker, const StepReport& news, TimePoint now,
                      CoordinatorOutput& out);
  void record_steps(bool all, TimePoint now, CoordinatorOutput& out);

  // Checkpoints and evaluations.
  Status on_checkpoint_saved(ShardId shard, const CheckpointSaved& saved, TimePoint now,
                             CoordinatorOutput& out);
  void on_evaluated(const Evaluated& evaluated, TimePoint now, CoordinatorOutput& out);

  // Losses.
  void lose_server(Role role, ShardId shard, const Loss& why, TimePoint now,
                   CoordinatorOutput& out);
  void lose_evaluator(const Loss& why, TimePoint now, CoordinatorOutput& out);
  void lose_worker(WorkerId worker, const Loss& why, TimePoint now, CoordinatorOutput& out);
  void on_left(WorkerId worker, TimePoint now, CoordinatorOutput& out);
  void continue_without(WorkerId worker, TimePoint now, CoordinatorOutput& out);

  // The end.
  void finish_if_over(TimePoint now, CoordinatorOutput& out);
  void dismiss_workers(TimePoint now, CoordinatorOutput& out);
  void end_if_complete(TimePoint now, CoordinatorOutput& out);
  std::set<WorkerId> owe_reports() const;
  RunCompletion::Unfinished unfinished() const;
  void end(RunOutcome outcome, EndCause cause, const std::string& reason, TimePoint now,
           CoordinatorOutput& out);
  void restart(event::RestartCause cause, const std::optional<Peer>& lost, const std::string& why,
               TimePoint now, CoordinatorOutput& out);
  void close_run(const Farewell& farewell, TimePoint now, CoordinatorOutput& out);

  RestartPoint restart_point() const;
  void report(const std::optional<Peer>& peer, EventPayload payload, TimePoint now,
              CoordinatorOutput& out) const;

  const CoordinatorSettings settings_;
  const RunClock run_;
  Phase phase_ = Phase::kGathering;
  bool restarts_ = false;
  std::optional<ResumeFrom> committed_;

  Gathering gathering_;
  ShardAssignment servers_;
  WorkerRoster workers_;
  EvaluatorPresence evaluator_;
  ModelAgreement model_;
  std::unique_ptr<Policy> policy_;  // until the clock has it
  std::optional<BlockMap> blocks_;  // since the plans were sent, as ...
  std::optional<StepClock> clock_;  // ... this
  StepReporter reporter_;
  CheckpointTally checkpoints_;
  RunCompletion completion_;
};

}  // namespace drover

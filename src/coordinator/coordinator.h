// Coordinator: keeps a run's membership, step clock and decisions, as a state machine without I/O.
//
// It is not on the data path: shards close steps by themselves, and workers start on new parameters
// at once. The coordinator gathers the processes of a run, decides how long each step waits, learns
// when each worker arrived, and ends the run.
//
// It routes every input to its parts, each a state machine of its own, and turns their answers into
// frames and records. The parts do not know each other:
//   Gathering          how long to wait for processes before training begins
//   ShardAssignment    which process serves which shard
//   WorkerRoster       which workers have joined, are ready, are members
//   EvaluatorPresence  whether the evaluator is connected
//   ModelAgreement     the model and the learning rules that all workers share
//   StepClock          the steps: decisions, closings, stragglers
//   StepReporter       the records of steps
//   CheckpointTally    which checkpoints are complete
//   RunCompletion      what the run waits for after the last step
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
  // The most steps that a shard's closings may be ahead of the slowest shard's.
  static constexpr size_t kEarlyMax = EarlyClosings::kEarlyMax;

  // REQUIRES: `policy` is null if and only if the run is asynchronous.
  Coordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy, TimePoint now);

  // A peer has sent its hello. An error is the reason to refuse the peer.
  Status on_hello(const Hello& hello, TimePoint now, CoordinatorOutput& out);
  // A process without a worker index wants to join. Returns the job and a free index, reserved for
  // WorkerRoster::kPlaceKept. An error is the reason why there is no index.
  Result<PlaceOffer> offer_place(const std::string& host, TimePoint now);
  // A message from an admitted peer. An error means that the peer breaks the protocol.
  Status on_message(Role role, uint32_t index, const Control& message, TimePoint now,
                    CoordinatorOutput& out);
  // A peer is lost: its connection ended, or its process ended before it joined.
  void on_lost(Role role, uint32_t index, const Loss& why, TimePoint now, CoordinatorOutput& out);
  // The manifest of a checkpoint was written, or writing it failed.
  void on_checkpoint_kept(Version version, const Status& kept, Duration took, TimePoint now,
                          CoordinatorOutput& out);
  // The user interrupts the run.
  void on_interrupt(TimePoint now, CoordinatorOutput& out);
  // The run cannot continue, for a reason outside the coordinator (such as a full disk).
  void on_failure(EndCause cause, const std::string& why, TimePoint now, CoordinatorOutput& out);
  // When to call on_time(), if there is no other input before: to review a decision, or to stop
  // waiting for a peer after the last step. Absent: not needed.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now, CoordinatorOutput& out);
  // Call about every second.
  void on_tick(TimePoint now, CoordinatorOutput& out);

  // The number of entries kept for later.
  size_t pending() const { return clock_ ? clock_->pending() : 0; }
  bool ended() const { return phase_ == Phase::kEnded; }
  // Whether this coordinator has ended but the run has not: the next incarnation continues the run.
  bool restarts() const { return restarts_; }
  // If restarts(): the state to continue from instead of the newest checkpoint. No step that all
  // shards closed is lost. Absent unless a process keeps this state in memory for each shard.
  const std::optional<ResumeFrom>& committed() const { return committed_; }
  // The open step.
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
  void begin_without_missing(Duration waited, TimePoint now, CoordinatorOutput& out);
  void add_members(TimePoint now, CoordinatorOutput& out);

  // Steps.
  Status on_step_closed(ShardId shard, const StepClosed& closed, TimePoint now,
                        CoordinatorOutput& out);
  void take_closing(const ShardClosing& closing, CoordinatorOutput& out);
  void close_step(TimePoint now, CoordinatorOutput& out);
  void open_step(TimePoint now, CoordinatorOutput& out);
  void send_decisions(CoordinatorOutput& out) const;
  void send_review(std::optional<DecisionRecord> review, CoordinatorOutput& out) const;
  void on_step_report(WorkerId worker, const StepReport& report, TimePoint now,
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
  bool needs_first_values() const;
  void on_length_wanted(Step steps, TimePoint now, CoordinatorOutput& out);
  void set_length(Step steps, CoordinatorOutput& out);
  void continue_without(WorkerId worker, TimePoint now, CoordinatorOutput& out);

  // The end.
  void finish_if_over(TimePoint now, CoordinatorOutput& out);
  void dismiss_workers(TimePoint now, CoordinatorOutput& out);
  void end_if_complete(TimePoint now, CoordinatorOutput& out);
  std::set<WorkerId> missing_reports() const;
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
  bool restarts_ = false;  // see restarts()
  std::optional<ResumeFrom> committed_;

  Gathering gathering_;
  ShardAssignment servers_;
  WorkerRoster workers_;
  EvaluatorPresence evaluator_;
  ModelAgreement model_;
  std::unique_ptr<Policy> policy_;  // moved into clock_ when that is made
  std::optional<BlockMap> blocks_;  // both exist once the plans are sent
  std::optional<StepClock> clock_;
  StepReporter reporter_;
  CheckpointTally checkpoints_;
  Step left_at_ = 0;  // the most steps that a script had made when it was done
  RunCompletion completion_;
};

}  // namespace drover

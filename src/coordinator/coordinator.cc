#include "coordinator/coordinator.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/end_reasons.h"
#include "coordinator/recovery.h"
#include "coordinator/start_messages.h"
#include "core/check.h"
#include "core/event_text.h"

namespace drover {
namespace {

std::optional<ModelAgreement::Prior> prior_of(const std::optional<ResumeFrom>& resume) {
  if (!resume) return std::nullopt;
  return ModelAgreement::Prior{.tensors = resume->tensors, .settings = resume->settings};
}

template <typename Message>
void send(Role role, uint32_t index, Message message, CoordinatorOutput& out) {
  out.messages.push_back({{role, index, Lane::kControl}, control_frame(std::move(message))});
}

// Steps that are added when a run is asked to end: shards may be ahead of what is known here.
constexpr Step kStepsToEnd = 2;

Error refuse_closing(ShardId shard, Step step) {
  return invalid_input("shard " + std::to_string(shard) + " closed step " + std::to_string(step) +
                       ", which is not its open step");
}

}  // namespace

Coordinator::Coordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
                         TimePoint now)
    : settings_(settings),
      run_{.started = now, .before = settings_.before},
      gathering_({.join_timeout = settings_.join_timeout,
                  .return_timeout = settings_.return_timeout,
                  .reads_checkpoint = settings_.resume && !settings_.resume->kept},
                 now),
      servers_(settings_.shards),
      workers_(settings_.workers, settings_.at_start()),
      model_(settings_.learning, settings_.workers_bring_model, prior_of(settings_.resume)),
      policy_(std::move(policy)),
      reporter_({.full_samples = settings_.full_samples,
                 .asynchronous = settings_.asynchronous.has_value(),
                 .partial_pull = settings_.pull.is_partial()}),
      checkpoints_(settings_.checkpoint_every, settings_.steps) {
  DROVER_CHECK((policy_ == nullptr) == settings_.asynchronous.has_value());
  if (settings_.balance) DROVER_CHECK(settings_.batch > 0);
  if (settings_.asynchronous) DROVER_CHECK(!settings_.pull.is_partial());
}

Step Coordinator::step() const {
  if (clock_) return clock_->step();
  return settings_.resume ? settings_.resume->step : 0;
}

// --- Before training

Status Coordinator::on_hello(const Hello& hello, TimePoint now, CoordinatorOutput& out) {
  if (const Status admitted = admit(hello, now); !admitted) return admitted;
  out.records.emplace_back(
      PeerRecord{.peer = {hello.role, hello.index}, .host = hello.host, .pid = hello.pid});
  if (!blocks_) {
    plan_if_settled(now, out);
  } else if (hello.role == Role::kWorker || hello.role == Role::kEvaluator) {
    send_welcome(hello.role, hello.index, out);
  } else {
    send(hello.role, hello.index, StandBy{.address = servers_.address(hello.index)}, out);
  }
  begin_if_ready(now, out);
  return done();
}

Status Coordinator::admit(const Hello& hello, TimePoint now) {
  if (restarts_) return Error{ErrorKind::kNotNow, "the run is restarting"};
  if (phase_ == Phase::kEnded) return invalid_input("the run has ended");
  switch (hello.role) {
    case Role::kStandby:
      if (!settings_.standby) return invalid_input("this run has no standbys");
      return servers_.on_hello(hello);
    case Role::kShard:
      return servers_.on_hello(hello);
    case Role::kWorker:
      return admit_worker(hello, now);
    case Role::kEvaluator:
      return admit_evaluator(hello);
    case Role::kCoordinator:
      break;
  }
  return invalid_input("this run already has a coordinator");
}

// A worker that joins during training is not a member at once. It connects to the shards, reports
// that it is ready, and takes part from the next step on.
Status Coordinator::admit_worker(const Hello& hello, TimePoint now) {
  if (const Status free = workers_.check(hello, now); !free) return free;
  if (phase_ == Phase::kEvaluating) return invalid_input("training has ended");
  if (const Status same = model_.admit(hello); !same) return same;
  workers_.join(hello, now);
  return done();
}

Status Coordinator::admit_evaluator(const Hello& hello) {
  if (!settings_.evaluator) return invalid_input("this run has no evaluator");
  // kNotNow: the connected one may be an earlier incarnation, whose end was not noticed yet.
  if (evaluator_.is_here())
    return Error{ErrorKind::kNotNow, peer_name(hello.role, hello.index) + " is already connected"};
  if (const Status same = model_.admit(hello); !same) return same;
  evaluator_.on_joined();
  return done();
}

Result<PlaceOffer> Coordinator::offer_place(const std::string& host, TimePoint now) {
  if (phase_ == Phase::kEnded || phase_ == Phase::kEvaluating)
    return invalid_input("training has ended");
  if (settings_.worker_options.job.empty()) {
    return invalid_input(
        "only training scripts can join this run as workers: they define its model");
  }
  const auto worker = workers_.offer_index(host, now);
  if (!worker) return worker.error();
  return PlaceOffer{.worker = worker.value(), .job = settings_.worker_options.job};
}

void Coordinator::plan_if_settled(TimePoint now, CoordinatorOutput& out) {
  if (!model_.layout() || phase_ != Phase::kGathering) return;
  std::optional<std::pair<KeptVersion, std::set<ShardId>>> kept;
  if (settings_.resume && settings_.resume->kept)
    kept.emplace(*settings_.resume->kept, settings_.resume->keepers);
  switch (servers_.settle(kept, gathering_.keepers_overdue(now))) {
    case ShardAssignment::Settled::kNotYet:
      return;
    case ShardAssignment::Settled::kYes:
      return send_plans(out);
    case ShardAssignment::Settled::kNever:
      return restart(event::RestartCause::kStateLost, {},
                     "no process has the state of step " + std::to_string(step()) + " in memory",
                     now, out);
  }
}

void Coordinator::send_plans(CoordinatorOutput& out) {
  blocks_.emplace(*model_.layout(), settings_.shards, settings_.block_floats);
  clock_.emplace(settings_, std::move(policy_), *blocks_, run_);
  const Plan plan = plan_of(settings_, model_.rules(), *blocks_);
  for (const auto& [role, shard] : servers_.here()) {
    if (servers_.serves(role, shard)) {
      send(role, shard, plan, out);
    } else {
      send(role, shard, StandBy{.address = servers_.address(shard)}, out);
    }
  }
  for (const WorkerId worker : workers_.joined()) send_welcome(Role::kWorker, worker, out);
  if (evaluator_.is_here()) send_welcome(Role::kEvaluator, 0, out);
}

void Coordinator::send_welcome(Role role, uint32_t index, CoordinatorOutput& out) const {
  std::vector<std::string> shards;
  for (ShardId shard = 0; shard < settings_.shards; ++shard)
    shards.push_back(servers_.address(shard));
  send(role, index, welcome_of(settings_, *blocks_, clock_->pull_share(), std::move(shards)), out);
}

void Coordinator::begin_if_ready(TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kGathering || !servers_.all_ready() || !workers_.all_members_ready()) return;
  if (settings_.evaluator && evaluator_.is_awaited()) return;
  phase_ = Phase::kTraining;
  completion_.on_training_began(now);
  if (const auto& resume = settings_.resume) {
    report(
        {},
        event::Resumed{
            .version = step(), .from_memory = resume->kept.has_value(), .folder = resume->folder},
        now, out);
  }
  open_step(now, out);
}

void Coordinator::on_tick(TimePoint now, CoordinatorOutput& out) {
  if (!blocks_) plan_if_settled(now, out);
  if (phase_ != Phase::kGathering) return;
  const auto waited = gathering_.overdue({.shards_ready = servers_.all_ready(),
                                          .worker_joined = !workers_.joined().empty(),
                                          .worker_ready = !workers_.none_ready()},
                                         now);
  if (waited) begin_without_missing(*waited, now, out);
}

// Begins training without the missing processes, or ends the run if it cannot.
void Coordinator::begin_without_missing(Duration waited, TimePoint now, CoordinatorOutput& out) {
  const Loss late{.cause = LossCause::kJoinTimeout, .waited = waited};
  const auto fail = [&](const std::string& why) {
    end(RunOutcome::kFailed, EndCause::kJoinTimeout, why, now, out);
  };
  const std::string missing =
      missing_with_shards(servers_.missing(), workers_.missing(), settings_.at_start());
  if (!missing.empty()) return fail(missing + " " + loss_text(late));
  // Otherwise a run whose workers never join would restart forever.
  if (settings_.recovers && workers_.none_ready())
    return fail("no worker was ready: they " + loss_text(late));
  if (settings_.evaluator && evaluator_.is_awaited()) on_lost(Role::kEvaluator, 0, late, now, out);
  // Later workers that are ready replace the missing ones.
  add_members(now, out);
  for (const WorkerId worker : members().list()) {
    if (workers_.is_ready(worker) || ended()) continue;
    send(Role::kWorker, worker,
         Farewell{.outcome = RunOutcome::kFailed,
                  .reason = "it " + loss_text(late),
                  .rejoin = settings_.recovers},
         out);
    lose_worker(worker, late, now, out);
  }
  if (phase_ != Phase::kGathering) return;
  fail(not_ready_reason(waited));
}

void Coordinator::add_members(TimePoint now, CoordinatorOutput& out) {
  for (const WorkerId worker : workers_.add_ready())
    report(Peer{Role::kWorker, worker}, event::Joined{}, now, out);
}

// --- Messages

Status Coordinator::on_message(Role role, uint32_t index, const Control& message, TimePoint now,
                               CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return done();
  const bool serves = servers_.serves(role, index);
  const bool works = role == Role::kWorker;
  if (std::holds_alternative<Ready>(message)) {
    servers_.on_ready(role, index);
    if (works) workers_.on_ready(index);
    begin_if_ready(now, out);
  } else if (const auto* closed = std::get_if<StepClosed>(&message); closed && serves) {
    return on_step_closed(index, *closed, now, out);
  } else if (const auto* arrived = std::get_if<Arrived>(&message); arrived && serves) {
    if (phase_ == Phase::kTraining)
      send_review(clock_->on_arrived(index, *arrived, members(), now), out);
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&message); saved && serves) {
    return on_checkpoint_saved(index, *saved, now, out);
  } else if (const auto* report = std::get_if<StepReport>(&message); report && works && clock_) {
    on_step_report(index, *report, now, out);
  } else if (const auto* abandoned = std::get_if<Abandoned>(&message); abandoned && works) {
    const auto record = clock_ ? clock_->on_abandoned(index, *abandoned, now) : std::nullopt;
    if (record) out.records.emplace_back(*record);
  } else if (const auto* length = std::get_if<RunLength>(&message); length && works) {
    on_length_wanted(length->steps, now, out);
  } else if (const auto* evaluated = std::get_if<Evaluated>(&message);
             evaluated && (works || role == Role::kEvaluator)) {
    on_evaluated(*evaluated, now, out);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    if (works && farewell->outcome == RunOutcome::kCompleted)
      on_left(index, now, out);
    else
      on_lost(role, index, {.cause = LossCause::kReported, .detail = farewell->reason}, now, out);
  } else {
    return invalid_input(peer_name(role, index) + " sent a message that its role may not send");
  }
  return done();
}

// --- Steps

// The closing may open a step for which closings of other shards were kept.
Status Coordinator::on_step_closed(ShardId shard, const StepClosed& closed, TimePoint now,
                                   CoordinatorOutput& out) {
  const ShardClosing closing{.shard = shard, .closed = closed, .received = now};
  const auto turn =
      phase_ == Phase::kTraining ? clock_->accept(closing) : EarlyClosings::Turn::kWrong;
  if (turn == EarlyClosings::Turn::kWrong) return refuse_closing(shard, closed.step);
  if (turn == EarlyClosings::Turn::kEarly) return done();
  take_closing(closing, out);
  while (phase_ == Phase::kTraining) {
    const auto early = clock_->take_early();
    if (!early) break;
    take_closing(*early, out);
    record_steps(false, early->received, out);
    finish_if_over(early->received, out);
  }
  record_steps(false, now, out);
  finish_if_over(now, out);
  return done();
}

void Coordinator::take_closing(const ShardClosing& closing, CoordinatorOutput& out) {
  clock_->take(closing);
  while (phase_ == Phase::kTraining && clock_->may_close()) close_step(closing.received, out);
}

void Coordinator::close_step(TimePoint now, CoordinatorOutput& out) {
  const Frame stop{{.type = FrameType::kStop, .step = clock_->step()}, {}};
  for (const WorkerId worker : clock_->close(members(), now))
    out.messages.push_back({to_worker(worker, Lane::kControl), stop});
  if (!clock_->at_end()) open_step(now, out);
}

void Coordinator::open_step(TimePoint now, CoordinatorOutput& out) {
  add_members(now, out);
  auto opened = clock_->open(members(), learning_rate(model_.rules().schedule, step()), now);
  out.records.emplace_back(std::move(opened.decision));
  send_decisions(out);
  for (const auto& [worker, share] : opened.shares) send(Role::kWorker, worker, share, out);
  if (!opened.pull) return;
  report({}, *opened.pull, now, out);
  for (const WorkerId worker : workers_.joined())
    send(Role::kWorker, worker, PullShare{.from = step() + 1, .share = opened.pull->share}, out);
}

void Coordinator::send_decisions(CoordinatorOutput& out) const {
  ShardId shard = 0;
  for (Decision& decision : clock_->decisions(members())) {
    send(servers_.serving(shard), shard, std::move(decision), out);
    ++shard;
  }
}

void Coordinator::send_review(std::optional<DecisionRecord> review, CoordinatorOutput& out) const {
  if (!review) return;
  out.records.emplace_back(*std::move(review));
  send_decisions(out);
}

void Coordinator::on_step_report(WorkerId worker, const StepReport& report, TimePoint now,
                                 CoordinatorOutput& out) {
  clock_->on_report(worker, report);
  record_steps(false, now, out);
  if (phase_ == Phase::kEvaluating) dismiss_workers(now, out);
}

void Coordinator::record_steps(bool all, TimePoint now, CoordinatorOutput& out) {
  if (!clock_) return;
  for (const ArrivalRecord& late : clock_->take_late_records(all)) out.records.emplace_back(late);
  reporter_.report(clock_->take_summaries(all), *blocks_, model_.rules().schedule.rule,
                   run_.at(now), out.records);
  if (reporter_.diverged() && phase_ == Phase::kTraining) {
    end(RunOutcome::kFailed, EndCause::kDiverged, diverged_reason(StepReporter::kEmptyStepsMax),
        now, out);
  }
}

// --- Checkpoints and evaluations

Status Coordinator::on_checkpoint_saved(ShardId shard, const CheckpointSaved& saved, TimePoint now,
                                        CoordinatorOutput& out) {
  if (!blocks_ || saved.version > std::min<Step>(clock_->steps(), step() + kEarlyMax) ||
      !checkpoints_.has(saved.version) || !blocks_->on_shards().contains(shard)) {
    return invalid_input("shard " + std::to_string(shard) + " saved a checkpoint of step " +
                         std::to_string(saved.version) + ", which is not due");
  }
  auto answer = checkpoints_.on_saved(shard, saved, blocks_->on_shards().size());
  if (answer.failure) report(Peer{Role::kShard, shard}, *std::move(answer.failure), now, out);
  if (!answer.parts.empty()) {
    out.checkpoints.push_back({.version = saved.version,
                               .parts = std::move(answer.parts),
                               .settings = model_.settings(),
                               .noise = clock_->noise(),
                               .tensors = blocks_->tensors()});
  }
  if (answer.all) end_if_complete(now, out);
  return done();
}

void Coordinator::on_checkpoint_kept(Version version, const Status& kept, Duration took,
                                     TimePoint now, CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return;
  if (auto event = checkpoints_.on_kept(version, kept, took))
    report({}, *std::move(event), now, out);
  end_if_complete(now, out);
}

void Coordinator::on_evaluated(const Evaluated& evaluated, TimePoint now, CoordinatorOutput& out) {
  out.records.emplace_back(EvaluationRecord{.version = evaluated.version,
                                            .at = run_.at(now),
                                            .loss = evaluated.loss,
                                            .accuracy = evaluated.accuracy,
                                            .samples = evaluated.samples});
  if (settings_.stop_at && settings_.stop_at->reached_by(evaluated.loss, evaluated.accuracy)) {
    report({}, event::Reached{.version = evaluated.version, .target = *settings_.stop_at}, now,
           out);
    return end(RunOutcome::kCompleted, EndCause::kTargetReached, "", now, out);
  }
  if (evaluated.version == settings_.steps) completion_.on_last_evaluated();
  end_if_complete(now, out);
}

// --- Losses

void Coordinator::on_lost(Role role, uint32_t index, const Loss& why, TimePoint now,
                          CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return;
  switch (role) {
    case Role::kWorker:
      return lose_worker(index, why, now, out);
    case Role::kEvaluator:
      return lose_evaluator(why, now, out);
    case Role::kShard:
    case Role::kStandby:
      return lose_server(role, index, why, now, out);
    case Role::kCoordinator:
      return;
  }
}

// The loss of a process that does not serve leaves its shard without a standby, and nothing else.
void Coordinator::lose_server(Role role, ShardId shard, const Loss& why, TimePoint now,
                              CoordinatorOutput& out) {
  const Peer peer{role, shard};
  if (settings_.standby && !servers_.serves(role, shard)) {
    servers_.on_lost(role, shard);
    return report(
        peer,
        event::Lost{
            .loss = why, .effect = event::LossEffect::kUnprotected, .fallback = restart_point()},
        now, out);
  }
  report(peer, event::Lost{.loss = why}, now, out);
  if (settings_.recovers)
    return restart(event::RestartCause::kServerLost, peer, name_of(peer) + " was lost", now, out);
  const std::string checkpoints = checkpoints_.any_kept() ? settings_.checkpoint_dir : "";
  end(RunOutcome::kFailed, EndCause::kServerLost,
      server_lost_reason(peer, why, step(), checkpoints), now, out);
}

void Coordinator::lose_evaluator(const Loss& why, TimePoint now, CoordinatorOutput& out) {
  evaluator_.on_lost(now);
  report(Peer{Role::kEvaluator, 0},
         event::Lost{.loss = why,
                     .effect = settings_.recovers ? event::LossEffect::kMayReturn
                                                  : event::LossEffect::kNoEvaluation},
         now, out);
  if (phase_ == Phase::kEvaluating) return end_if_complete(now, out);
  begin_if_ready(now, out);
}

void Coordinator::lose_worker(WorkerId worker, const Loss& why, TimePoint now,
                              CoordinatorOutput& out) {
  const Peer peer{Role::kWorker, worker};
  const auto [had_joined, backoff] = workers_.on_lost(worker, now);
  if (clock_) clock_->forget(worker);
  if (backoff.wait > Duration::zero() && phase_ == Phase::kTraining) {
    report(
        peer,
        event::BackedOff{
            .losses = backoff.losses, .wait = backoff.wait, .host = !workers_.is_of_start(worker)},
        now, out);
  }
  if (phase_ == Phase::kEvaluating) return end_if_complete(now, out);  // it was dismissed
  if (had_joined && settings_.workers_indispensable && workers_.is_of_start(worker)) {
    report(peer, event::Lost{.loss = why}, now, out);
    return end(RunOutcome::kFailed, EndCause::kRankLost, rank_lost_reason(peer, why), now, out);
  }
  if (worker == 0 && needs_first_values()) {
    report(peer, event::Lost{.loss = why}, now, out);
    return end(
        RunOutcome::kFailed, EndCause::kWorkersLost,
        "worker 0 was lost before it had sent the initial parameters, which are those of its "
        "script: " +
            loss_text(why),
        now, out);
  }
  if (!workers_.remove_member(worker)) {
    if (had_joined)
      report(peer, event::Lost{.loss = why, .effect = event::LossEffect::kNotStarted}, now, out);
    return;
  }
  const bool others = members().count() > 0;
  report(peer,
         event::Lost{.loss = why,
                     .effect = others ? event::LossEffect::kContinues : event::LossEffect::kNone},
         now, out);
  if (others) return continue_without(worker, now, out);
  const std::string all_lost = "all workers were lost";
  if (settings_.recovers) return restart(event::RestartCause::kWorkersLost, {}, all_lost, now, out);
  end(RunOutcome::kFailed, EndCause::kWorkersLost, all_lost + "; the last: " + loss_text(why), now,
      out);
}

// The run begins with the values of worker 0's script, and shards still wait for them.
bool Coordinator::needs_first_values() const {
  return phase_ == Phase::kGathering && settings_.workers_bring_model && !settings_.resume &&
         !settings_.recovers && !servers_.all_ready();
}

// The worker has finished its work. The run is complete when the last member has.
void Coordinator::on_left(WorkerId worker, TimePoint now, CoordinatorOutput& out) {
  workers_.on_left(worker);
  if (clock_) clock_->forget(worker);
  if (phase_ == Phase::kEvaluating) return end_if_complete(now, out);
  if (!workers_.remove_member(worker)) return;
  report(Peer{Role::kWorker, worker}, event::Left{}, now, out);
  if (members().count() > 0) return continue_without(worker, now, out);
  // The shards have closed the steps before, though the news may still be on its way.
  if (phase_ != Phase::kTraining || settings_.asynchronous || left_at_ == 0 ||
      left_at_ < clock_->step())
    return end(RunOutcome::kCompleted, EndCause::kWorkersLeft, "", now, out);
  set_length(left_at_, out);
  finish_if_over(now, out);
}

// A script is done, or wants the run to stop: all workers are to end with the same version. It has
// to be one that no shard has passed when it hears of it.
void Coordinator::on_length_wanted(Step steps, TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kTraining || !settings_.workers_bring_model) return;
  left_at_ = std::max(left_at_, std::min<Step>(steps, clock_->step() + EarlyClosings::kEarlyMax));
  const Step soonest = std::max(left_at_, clock_->step()) + kStepsToEnd;
  if (soonest < clock_->steps()) set_length(soonest, out);
  finish_if_over(now, out);
}

void Coordinator::set_length(Step steps, CoordinatorOutput& out) {
  clock_->end_at(steps);
  checkpoints_.end_at(steps);
  for (ShardId shard = 0; shard < settings_.shards; ++shard)
    send(servers_.serving(shard), shard, RunLength{steps}, out);
  for (const WorkerId worker : workers_.joined())
    send(Role::kWorker, worker, RunLength{steps}, out);
}

// The policy's choice stays in force, but the decision is sent again: shards must not count the
// lost worker's gradient towards the cutoff, though they use it.
void Coordinator::continue_without(WorkerId worker, TimePoint now, CoordinatorOutput& out) {
  if (clock_) clock_->on_removed(worker);
  if (phase_ == Phase::kTraining) return send_decisions(out);
  begin_if_ready(now, out);
}

// --- The end

std::optional<TimePoint> Coordinator::wake_at() const {
  if (phase_ == Phase::kTraining) return clock_->wake_at();
  if (phase_ == Phase::kEvaluating) return completion_.deadline(unfinished());
  return std::nullopt;
}

void Coordinator::on_time(TimePoint now, CoordinatorOutput& out) {
  const auto due = wake_at();
  if (!due || now < *due) return;
  if (phase_ == Phase::kTraining) return send_review(clock_->on_time(members(), now), out);
  if (completion_.expire(unfinished(), now) == RunCompletion::Obligation::kCheckpoint) {
    if (auto event = checkpoints_.give_up_last()) report({}, *std::move(event), now, out);
  }
  dismiss_workers(now, out);
}

void Coordinator::finish_if_over(TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kTraining || !clock_->is_over()) return;
  completion_.on_training_ended(now);
  phase_ = Phase::kEvaluating;
  dismiss_workers(now, out);
}

// Dismisses workers without missing reports. If the run may still restart, it keeps workers that it
// would need again.
void Coordinator::dismiss_workers(TimePoint now, CoordinatorOutput& out) {
  if (!settings_.recovers || settings_.workers_bring_model) {
    for (const WorkerId worker : completion_.dismiss(workers_.joined(), missing_reports()))
      send(Role::kWorker, worker, Farewell{}, out);
  }
  end_if_complete(now, out);
}

void Coordinator::end_if_complete(TimePoint now, CoordinatorOutput& out) {
  if (phase_ == Phase::kEvaluating && completion_.outstanding(unfinished()).empty())
    end(RunOutcome::kCompleted, EndCause::kCompleted, "", now, out);
}

// Connected workers with a used gradient whose report has not arrived.
std::set<WorkerId> Coordinator::missing_reports() const {
  std::set<WorkerId> missing;
  if (settings_.asynchronous || completion_.is_waived(RunCompletion::Obligation::kReports))
    return missing;
  for (const WorkerId worker : clock_->unreported()) {
    if (workers_.has_joined(worker)) missing.insert(worker);
  }
  return missing;
}

RunCompletion::Unfinished Coordinator::unfinished() const {
  return {.reports = !missing_reports().empty(),
          .leaving = settings_.workers_bring_model && !workers_.joined().empty(),
          .checkpoint = checkpoints_.awaits_last(),
          .evaluator_here = evaluator_.is_here(),
          .evaluator_lost = settings_.recovers ? evaluator_.lost_since() : std::nullopt};
}

void Coordinator::on_interrupt(TimePoint now, CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded && !std::exchange(restarts_, false)) return;
  committed_.reset();  // no coordinator continues from it
  end(RunOutcome::kInterrupted, EndCause::kInterrupted, interrupted_reason(step(), settings_.steps),
      now, out);
}

void Coordinator::on_failure(EndCause cause, const std::string& why, TimePoint now,
                             CoordinatorOutput& out) {
  if (phase_ != Phase::kEnded) end(RunOutcome::kFailed, cause, why, now, out);
}

void Coordinator::end(RunOutcome outcome, EndCause cause, const std::string& reason, TimePoint now,
                      CoordinatorOutput& out) {
  close_run({.outcome = outcome, .reason = reason}, now, out);
  report({}, event::Ended{.outcome = outcome, .cause = cause, .reason = reason}, now, out);
  out.records.emplace_back(RunEnd{.outcome = outcome,
                                  .cause = cause,
                                  .reason = reason,
                                  .elapsed = completion_.trained(),
                                  .parameters_digest = clock_ ? clock_->digest() : 0,
                                  .memory_bytes = {}});
}

// Every restart works the same way: all processes join again, and the run continues from the newest
// checkpoint or from state that processes keep in memory.
void Coordinator::restart(event::RestartCause cause, const std::optional<Peer>& lost,
                          const std::string& why, TimePoint now, CoordinatorOutput& out) {
  if (cause != event::RestartCause::kStateLost)
    committed_ = resume_from_memory(settings_, model_, blocks_ ? &*blocks_ : nullptr,
                                    clock_ ? &*clock_ : nullptr);
  restarts_ = true;
  close_run({.outcome = RunOutcome::kFailed, .reason = why, .rejoin = true}, now, out);
  report(lost,
         event::Restarted{.cause = cause,
                          .from = committed_ ? RestartPoint::kMemory : restart_point()},
         now, out);
}

void Coordinator::close_run(const Farewell& farewell, TimePoint now, CoordinatorOutput& out) {
  if (phase_ == Phase::kTraining) completion_.on_training_ended(now);
  phase_ = Phase::kEnded;
  record_steps(true, now, out);
  for (const auto& [role, shard] : servers_.here()) send(role, shard, farewell, out);
  for (const WorkerId worker : workers_.joined()) send(Role::kWorker, worker, farewell, out);
  if (evaluator_.is_here()) send(Role::kEvaluator, 0, farewell, out);
}

RestartPoint Coordinator::restart_point() const {
  return drover::restart_point(settings_, checkpoints_.any_kept());
}

void Coordinator::report(const std::optional<Peer>& peer, EventPayload payload, TimePoint now,
                         CoordinatorOutput& out) const {
  out.records.emplace_back(
      EventRecord{.at = run_.at(now), .step = step(), .peer = peer, .payload = std::move(payload)});
}

}  // namespace drover

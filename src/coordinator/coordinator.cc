#include "coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "core/block_share.h"
#include "core/check.h"
#include "core/duration_text.h"
#include "core/event_text.h"
#include "wire/limits.h"

namespace drover {
namespace {

std::optional<ModelAgreement::Prior> prior_of(const std::optional<ResumeFrom>& resume) {
  if (!resume) return std::nullopt;
  return ModelAgreement::Prior{.tensors = resume->tensors, .settings = resume->settings};
}

}  // namespace

Coordinator::Coordinator(const CoordinatorSettings& settings, std::unique_ptr<Policy> policy,
                         TimePoint now)
    : settings_(settings),
      started_(now),
      workers_(settings_.workers, settings_.at_start()),
      servers_(settings_.shards),
      model_(settings_.learning, settings_.workers_bring_model, prior_of(settings_.resume)),
      checkpoints_(settings_.checkpoint_every, settings_.steps),
      reporter_({.full_samples = settings_.full_samples,
                 .free_running = settings_.free_running.has_value(),
                 .partial_pull = settings_.pull.weak()}),
      orders_(settings_.stragglers, settings_.probe, settings_.seed) {
  DROVER_CHECK((policy == nullptr) == settings_.free_running.has_value());
  if (settings_.balance) DROVER_CHECK(settings_.batch > 0);
  if (settings_.free_running) DROVER_CHECK(!settings_.pull.weak());
  if (!settings_.pull.choose) pull_share_ = settings_.pull.share;
  if (policy) decider_.emplace(std::move(policy), settings_.limits, settings_.balance);
  if (settings_.resume) step_ = settings_.resume->step;
}

Status Coordinator::on_hello(const Hello& hello, TimePoint now, CoordinatorOutput& out) {
  const std::string name = peer_name(hello.role, hello.index);
  if (again_) return Error{ErrorKind::kNotNow, "the run is starting over"};
  if (phase_ == Phase::kEnded) return invalid_input("the run has ended");
  switch (hello.role) {
    case Role::kShard:
    case Role::kStandby:
      if (hello.role == Role::kStandby && !settings_.standby)
        return invalid_input("this run has no standbys");
      if (const Status admitted = servers_.on_hello(hello); !admitted) return admitted;
      break;
    case Role::kWorker:
      if (const Status admitted = admit_worker(hello, now); !admitted) return admitted;
      break;
    case Role::kEvaluator:
      if (!settings_.evaluator) return invalid_input("this run needs no evaluator");
      // Perhaps its earlier incarnation, whose end has not been noticed yet.
      if (evaluator_.is_here()) return Error{ErrorKind::kNotNow, name + " is here already"};
      if (const Status same = model_.admit(hello); !same) return same;
      evaluator_.on_joined();
      break;
    case Role::kCoordinator:
      return invalid_input("this run has a coordinator already");
  }
  out.happenings.emplace_back(
      PeerRecord{.peer = {hello.role, hello.index}, .host = hello.host, .pid = hello.pid});
  if (!blocks_) {
    plan_if_settled(now, out);
  } else if (hello.role == Role::kWorker || hello.role == Role::kEvaluator) {
    send_welcome(hello.role, hello.index, out);
  } else {
    out.messages.push_back({{hello.role, hello.index, Lane::kControl},
                            control_frame(StandBy{.address = servers_.address(hello.index)})});
  }
  begin_if_ready(now, out);
  return done();
}

Result<PlaceOffer> Coordinator::offer_place(const std::string& host, TimePoint now) {
  if (phase_ == Phase::kEnded || phase_ == Phase::kEvaluating)
    return invalid_input("the training has ended");
  if (settings_.told.job.empty())
    return invalid_input("only scripts can be workers of this run: its model is their own");
  const auto worker = workers_.offer_index(host, now);
  if (!worker) return worker.error();
  return PlaceOffer{.worker = worker.value(), .job = settings_.told.job};
}

// A worker that comes while training is under way is not a member yet: it connects to the shards,
// says that it is ready, and takes part from the next step on.
Status Coordinator::admit_worker(const Hello& hello, TimePoint now) {
  if (const Status free = workers_.check(hello, now); !free) return free;
  if (phase_ == Phase::kEvaluating) return invalid_input("the training has ended");
  if (const Status same = model_.admit(hello); !same) return same;
  workers_.join(hello, now);
  return done();
}

void Coordinator::send_plans(CoordinatorOutput& out) {
  blocks_.emplace(*model_.layout(), settings_.shards, settings_.block_floats);
  std::vector<ShardId> names;
  for (const auto& [shard, blocks] : blocks_->on_shards()) {
    names.push_back(shard);
    next_closing_[shard] = step_;
  }
  ledger_.emplace(static_cast<uint32_t>(names.size()), settings_.free_running.has_value(), names);
  if (settings_.resume) ledger_->resume(settings_.resume->step, settings_.resume->noise);
  if (settings_.pull.choose) pull_choice_.emplace(blocks_->on_shards(), settings_.pull.warmup);
  const Plan plan{.workers = settings_.workers,
                  .steps = settings_.steps,
                  .evaluate_every = settings_.evaluate_every,
                  .learning = model_.rules(),
                  .full_samples = settings_.full_samples,
                  .free_running = settings_.free_running.has_value(),
                  .staleness = settings_.free_running.value_or(FreeRunning{}).staleness,
                  .weak = settings_.pull.weak(),
                  .push_grace = settings_.push_grace,
                  .first_step = step_,
                  .resume_from = settings_.resume ? settings_.resume->folder : "",
                  .kept = settings_.resume ? settings_.resume->kept : std::nullopt,
                  .standby = settings_.standby,
                  .life = settings_.life,
                  .checkpoint_every = settings_.checkpoint_every,
                  .checkpoint_dir = settings_.checkpoint_dir,
                  .tensors = model_.layout()->tensors(),
                  .blocks = blocks_->plan()};
  for (const auto& [role, shard] : servers_.here()) {
    const Address to{role, shard, Lane::kControl};
    if (servers_.serves(role, shard)) {
      out.messages.push_back({to, control_frame(plan)});
    } else {
      out.messages.push_back({to, control_frame(StandBy{.address = servers_.address(shard)})});
    }
  }
  for (const WorkerId worker : workers_.joined()) send_welcome(Role::kWorker, worker, out);
  if (evaluator_.is_here()) send_welcome(Role::kEvaluator, 0, out);
}

void Coordinator::send_welcome(Role role, uint32_t index, CoordinatorOutput& out) {
  Welcome welcome{.shards = {},
                  .blocks = blocks_->plan(),
                  .steps = settings_.steps,
                  .evaluate_every = settings_.evaluate_every,
                  .free_running = settings_.free_running.has_value(),
                  .workers = settings_.workers,
                  .batch = settings_.batch,
                  .seed = settings_.seed,
                  .wire_dtype = settings_.told.wire_dtype,
                  .slow = settings_.told.slow,
                  .weak = settings_.pull.weak(),
                  .pull_share = pull_share_,
                  .pull_grace = settings_.pull.grace,
                  .first_step = settings_.resume ? settings_.resume->step : 0};
  for (ShardId shard = 0; shard < settings_.shards; ++shard)
    welcome.shards.push_back(servers_.address(shard));
  out.messages.push_back({{role, index, Lane::kControl}, control_frame(std::move(welcome))});
}

Status Coordinator::on_message(Role role, uint32_t index, const Control& message, TimePoint now,
                               CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return done();
  const std::string name = peer_name(role, index);
  const bool serves = servers_.serves(role, index);
  if (std::holds_alternative<Ready>(message)) {
    servers_.on_ready(role, index);
    if (role == Role::kWorker) workers_.on_ready(index);
    begin_if_ready(now, out);
  } else if (const auto* closed = std::get_if<StepClosed>(&message); closed && serves) {
    return on_step_closed(index, *closed, now, out);
  } else if (const auto* arrived = std::get_if<Arrived>(&message); arrived && serves) {
    on_arrived(index, *arrived, now, out);
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&message); saved && serves) {
    return on_checkpoint_saved(index, *saved, now, out);
  } else if (const auto* report = std::get_if<StepReport>(&message);
             report && role == Role::kWorker && ledger_) {
    ledger_->on_report(index, *report);
    if (pull_choice_) pull_choice_->learn(report->compute, report->responses);
    tell_steps(false, now, out);
    if (phase_ == Phase::kEvaluating) dismiss_workers(now, out);
  } else if (const auto* abandoned = std::get_if<Abandoned>(&message);
             abandoned && role == Role::kWorker) {
    if (const auto record = orders_.on_abandoned(index, *abandoned, now))
      out.happenings.emplace_back(*record);
  } else if (const auto* evaluated = std::get_if<Evaluated>(&message);
             evaluated && (role == Role::kEvaluator || role == Role::kWorker)) {
    on_evaluated(*evaluated, now, out);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    if (role == Role::kWorker && farewell->outcome == RunOutcome::kCompleted)
      on_left(index, now, out);
    else
      on_lost(role, index, {.cause = LossCause::kReported, .detail = farewell->reason}, now, out);
  } else {
    return invalid_input(name + " sent a message that only others send");
  }
  return done();
}

void Coordinator::begin_if_ready(TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kGathering || !servers_.all_ready()) return;
  if (settings_.evaluator && evaluator_.is_awaited()) return;
  if (!workers_.all_members_ready()) return;
  phase_ = Phase::kTraining;
  training_began_ = now;
  if (settings_.resume) {
    report({},
           event::Resumed{.version = step_,
                          .from_memory = settings_.resume->kept.has_value(),
                          .folder = settings_.resume->folder},
           now, out);
  }
  open_step(now, out);
}

void Coordinator::on_evaluated(const Evaluated& evaluated, TimePoint now, CoordinatorOutput& out) {
  out.happenings.emplace_back(EvaluationRecord{.version = evaluated.version,
                                               .at = since_start(now),
                                               .loss = evaluated.loss,
                                               .accuracy = evaluated.accuracy,
                                               .samples = evaluated.samples});
  if (settings_.stop_at && settings_.stop_at->reached_by(evaluated.loss, evaluated.accuracy)) {
    report({}, event::Reached{.version = evaluated.version, .target = *settings_.stop_at}, now,
           out);
    return end(RunOutcome::kCompleted, EndCause::kTargetReached, "", now, out);
  }
  evaluated_last_ = evaluated_last_ || evaluated.version == settings_.steps;
  end_if_complete(now, out);
}

Status Coordinator::on_checkpoint_saved(ShardId shard, const CheckpointSaved& saved, TimePoint now,
                                        CoordinatorOutput& out) {
  if (!ledger_ || saved.version > std::min<Step>(settings_.steps, step_ + kEarlyMax) ||
      !checkpoints_.has(saved.version) || !blocks_->on_shards().contains(shard)) {
    return invalid_input("shard " + std::to_string(shard) + " saved a checkpoint of step " +
                         std::to_string(saved.version) + ", which was not wanted");
  }
  auto answer = checkpoints_.on_saved(shard, saved, blocks_->on_shards().size());
  if (answer.failure) report(Peer{Role::kShard, shard}, *std::move(answer.failure), now, out);
  if (!answer.parts.empty()) {
    out.checkpoints.push_back({.version = saved.version,
                               .parts = std::move(answer.parts),
                               .settings = model_.settings(),
                               .noise = ledger_->noise(),
                               .tensors = model_.layout()->tensors()});
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

void Coordinator::on_lost(Role role, uint32_t index, const Loss& why, TimePoint now,
                          CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return;
  switch (role) {
    case Role::kWorker:
      return lose_worker(index, why, now, out);
    case Role::kEvaluator:
      evaluator_.on_lost(now);
      report(Peer{role, index},
             event::Lost{.loss = why,
                         .effect = settings_.recovers ? event::LossEffect::kMayReturn
                                                      : event::LossEffect::kNoEvaluation},
             now, out);
      if (phase_ == Phase::kEvaluating) return end_if_complete(now, out);
      return begin_if_ready(now, out);
    case Role::kShard:
    case Role::kStandby:
      return lose_server(role, index, why, now, out);
    case Role::kCoordinator:
      return;
  }
}

void Coordinator::lose_worker(WorkerId worker, const Loss& why, TimePoint now,
                              CoordinatorOutput& out) {
  const Peer peer{Role::kWorker, worker};
  const auto [was_here, backed_off] = workers_.on_lost(worker, now);
  forget_worker(worker);
  if (backed_off.wait > Duration::zero() && phase_ == Phase::kTraining) {
    report(peer,
           event::BackedOff{.losses = backed_off.losses,
                            .wait = backed_off.wait,
                            .host = !workers_.is_of_start(worker)},
           now, out);
  }
  if (phase_ == Phase::kEvaluating) return end_if_complete(now, out);  // it was told to go
  if (was_here && settings_.workers_indispensable && workers_.is_of_start(worker)) {
    report(peer, event::Lost{.loss = why}, now, out);
    return end(RunOutcome::kFailed, EndCause::kRankLost,
               "lost " + name_of(peer) + ": " + loss_text(why) +
                   ". With --transport mpi no rank can be missed; --resume goes on from the newest "
                   "checkpoint, if there is one (--checkpoint)",
               now, out);
  }
  if (!workers_.remove_member(worker)) {
    if (was_here) {
      report(peer, event::Lost{.loss = why, .effect = event::LossEffect::kNotStarted}, now, out);
    }
    return;
  }
  const bool others = workers_.members().count() > 0;
  report(peer,
         event::Lost{.loss = why,
                     .effect = others ? event::LossEffect::kContinues : event::LossEffect::kNone},
         now, out);
  const std::string all_lost = "all workers were lost";
  if (!others && settings_.recovers)
    return start_over(event::RestartCause::kWorkersLost, {}, all_lost, now, out);
  if (!others)
    return end(RunOutcome::kFailed, EndCause::kWorkersLost,
               all_lost + "; the last: " + loss_text(why), now, out);
  if (ledger_) ledger_->on_lost(worker);
  // The choice stays: what the lost one has already delivered is used, but must not crowd out the
  // others.
  if (phase_ == Phase::kTraining) return send_decision(out);
  begin_if_ready(now, out);
}

// It has done all that it was to do. When the last has, so has the run.
void Coordinator::on_left(WorkerId worker, TimePoint now, CoordinatorOutput& out) {
  workers_.on_left(worker);
  forget_worker(worker);
  if (phase_ == Phase::kEvaluating) return end_if_complete(now, out);
  if (!workers_.remove_member(worker)) return;
  report(Peer{Role::kWorker, worker}, event::Left{}, now, out);
  if (workers_.members().count() == 0)
    return end(RunOutcome::kCompleted, EndCause::kWorkersLeft, "", now, out);
  if (ledger_) ledger_->on_lost(worker);
  if (phase_ == Phase::kTraining) return send_decision(out);
  begin_if_ready(now, out);
}

void Coordinator::forget_worker(WorkerId worker) {
  shares_.erase(worker);  // its next incarnation has to be told anew
  orders_.on_lost(worker);
}

// Since when those who are missing are waited for, and for how long.
std::pair<TimePoint, Duration> Coordinator::patience_with_the_missing(TimePoint now) {
  const bool served = servers_.all_ready();
  if (served && !served_since_) served_since_ = now;
  if (served && !workers_.none_ready() && !some_ready_since_) some_ready_since_ = now;
  if (some_ready_since_ && settings_.return_timeout)
    return {*some_ready_since_, *settings_.return_timeout};
  const bool reads = settings_.resume && !settings_.resume->kept;
  if (!reads) return {started_, settings_.join_timeout};
  // Nobody is ready before the shards have read what they go on from.
  if (served) return {*served_since_, settings_.join_timeout};
  return {started_, workers_.joined().empty() ? settings_.join_timeout
                                              : std::max(settings_.join_timeout, kReadingMax)};
}

// Who has not come, if a shard is among them: without one a run cannot begin.
std::string Coordinator::missing_without_shards() const {
  std::string names;
  const auto name = [&](const std::string& each) { names += (names.empty() ? "" : ", ") + each; };
  for (const ShardId shard : servers_.missing()) name(peer_name(Role::kShard, shard));
  if (names.empty()) return names;
  const uint32_t workers = workers_.missing();
  if (workers > 0)
    name(std::to_string(workers) + " of " + std::to_string(settings_.at_start()) + " workers");
  return names;
}

void Coordinator::on_tick(TimePoint now, CoordinatorOutput& out) {
  if (!blocks_) plan_if_settled(now, out);
  const auto [since, patience] = patience_with_the_missing(now);
  if (phase_ != Phase::kGathering || now - since < patience) return;
  const Loss late{.cause = LossCause::kJoinTimeout, .waited = patience};
  if (const std::string missing = missing_without_shards(); !missing.empty())
    return end(RunOutcome::kFailed, EndCause::kJoinTimeout, missing + " " + loss_text(late), now,
               out);
  // A run whose workers do not come would otherwise start over for ever.
  if (settings_.recovers && workers_.none_ready())
    return end(RunOutcome::kFailed, EndCause::kJoinTimeout,
               "no worker was ready: they " + loss_text(late), now, out);
  if (settings_.evaluator && evaluator_.is_awaited()) on_lost(Role::kEvaluator, 0, late, now, out);
  // Workers that came to be there later take the places of those that have not come.
  add_members(now, out);
  for (const WorkerId worker : workers_.members().list()) {
    if (workers_.is_ready(worker) || ended()) continue;
    send_farewell(Role::kWorker, worker,
                  {.outcome = RunOutcome::kFailed,
                   .reason = "it " + loss_text(late),
                   .again = settings_.recovers},
                  out);
    lose_worker(worker, late, now, out);
  }
  if (phase_ == Phase::kGathering) {
    end(RunOutcome::kFailed, EndCause::kJoinTimeout,
        "not all processes were ready to train within " +
            std::to_string(static_cast<int>(seconds(patience))) + " s",
        now, out);
  }
}

void Coordinator::on_interrupt(TimePoint now, CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded && !std::exchange(again_, false)) return;
  committed_.reset();  // nobody goes on from it
  end(RunOutcome::kInterrupted, EndCause::kInterrupted,
      "interrupted at step " + std::to_string(step_) +
          (settings_.steps < kEndless ? " of " + std::to_string(settings_.steps) : ""),
      now, out);
}

void Coordinator::on_failure(EndCause cause, const std::string& why, TimePoint now,
                             CoordinatorOutput& out) {
  if (phase_ != Phase::kEnded) end(RunOutcome::kFailed, cause, why, now, out);
}

void Coordinator::end(RunOutcome outcome, EndCause cause, const std::string& reason, TimePoint now,
                      CoordinatorOutput& out) {
  if (phase_ == Phase::kTraining) training_ended_ = now;
  phase_ = Phase::kEnded;
  tell_steps(true, now, out);
  dismiss({.outcome = outcome, .reason = reason}, out);
  report({}, event::Ended{.outcome = outcome, .cause = cause, .reason = reason}, now, out);
  out.happenings.emplace_back(
      RunEnd{.outcome = outcome,
             .cause = cause,
             .reason = reason,
             .elapsed = training_began_ ? training_ended_ - *training_began_ : Duration::zero(),
             .parameters_digest = digest_,
             .memory_bytes = {}});
}

// One way to go on after every loss: everybody joins anew, and the run goes on from the newest
// checkpoint.
void Coordinator::start_over(event::RestartCause cause, const std::optional<Peer>& lost,
                             const std::string& why, TimePoint now, CoordinatorOutput& out) {
  note_committed();
  if (phase_ == Phase::kTraining) training_ended_ = now;
  phase_ = Phase::kEnded;
  again_ = true;
  tell_steps(true, now, out);
  dismiss({.outcome = RunOutcome::kFailed, .reason = why, .again = true}, out);
  report(lost,
         event::Restarted{.cause = cause,
                          .from = committed_ ? RestartPoint::kMemory : restart_point()},
         now, out);
}

// Where the run can continue without what is kept in memory.
RestartPoint Coordinator::restart_point() const {
  if (checkpoints_.any_kept() || (settings_.resume && !settings_.resume->kept))
    return RestartPoint::kCheckpoint;
  if (settings_.checkpoint_dir.empty()) return RestartPoint::kBeginning;
  return settings_.resume ? RestartPoint::kCheckpointIfAny : RestartPoint::kBeginningNoneYet;
}

void Coordinator::dismiss(const Farewell& farewell, CoordinatorOutput& out) const {
  for (const auto& [role, shard] : servers_.here()) send_farewell(role, shard, farewell, out);
  for (const WorkerId worker : workers_.joined())
    send_farewell(Role::kWorker, worker, farewell, out);
  if (evaluator_.is_here()) send_farewell(Role::kEvaluator, 0, farewell, out);
}

void Coordinator::report(const std::optional<Peer>& peer, EventPayload payload, TimePoint now,
                         CoordinatorOutput& out) const {
  out.happenings.emplace_back(EventRecord{
      .at = since_start(now), .step = step_, .peer = peer, .payload = std::move(payload)});
}

void Coordinator::send_farewell(Role role, uint32_t index, const Farewell& farewell,
                                CoordinatorOutput& out) const {
  out.messages.push_back({{role, index, Lane::kControl}, control_frame(farewell)});
}

}  // namespace drover

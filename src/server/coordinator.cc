#include "server/coordinator.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "wire/limits.h"

namespace drover {

Coordinator::Coordinator(CoordinatorSettings settings, TimePoint now)
    : settings_(std::move(settings)), started_(now), members_(settings_.workers) {}

Status Coordinator::on_hello(const Hello& hello, TimePoint now, CoordinatorOutput& out) {
  const std::string name = peer_name(hello.role, hello.index);
  if (phase_ == Phase::kEnded) return invalid_input("the run has ended");
  switch (hello.role) {
    case Role::kShard:
      if (hello.index >= settings_.shards) return invalid_input("this run has no " + name);
      if (shard_addresses_.contains(hello.index)) return invalid_input(name + " is here already");
      shard_addresses_[hello.index] = hello.address;
      break;
    case Role::kWorker:
      if (hello.index >= settings_.workers) return invalid_input("this run has no " + name);
      if (joined_.contains(hello.index)) return invalid_input(name + " is here already");
      if (!members_.has(hello.index))
        return invalid_input(name + " came too late to take part in this run");
      if (const Status same = admit_model(hello); !same) return same;
      joined_.insert(hello.index);
      break;
    case Role::kEvaluator:
      if (!settings_.evaluator || evaluator_here_)
        return invalid_input("this run needs no other evaluator");
      if (const Status same = admit_model(hello); !same) return same;
      evaluator_here_ = true;
      break;
    case Role::kCoordinator:
      return invalid_input("this run has a coordinator already");
  }
  out.happenings.push_back(PeerRecord{.name = name, .host = hello.host, .pid = hello.pid});
  if (!planned_ && layout_ && shard_addresses_.size() == settings_.shards) {
    send_plans(out);
  } else if (planned_ && hello.role != Role::kShard) {
    send_welcome(hello.role, hello.index, out);
  }
  begin_if_ready(now, out);
  return done();
}

Status Coordinator::admit_model(const Hello& hello) {
  const Layout theirs(hello.tensors);
  if (hello.tensors.empty()) return invalid_input("its model has no tensors");
  if (!layout_) layout_ = theirs;
  if (theirs == *layout_) return done();
  return invalid_input(
      "its model differs from that of the others (" + std::to_string(theirs.parameter_count()) +
      " parameters in " + std::to_string(theirs.tensors().size()) + " tensors, theirs has " +
      std::to_string(layout_->parameter_count()) + " in " +
      std::to_string(layout_->tensors().size()) + "); start all with the same job");
}

void Coordinator::send_plans(CoordinatorOutput& out) {
  planned_ = true;
  blocks_ = plan_blocks(*layout_, settings_.shards);
  // A shard may have got no block (more shards than blocks); it has nothing to close.
  std::set<ShardId> owners;
  for (const Block& block : blocks_.blocks) owners.insert(block.shard);
  ledger_.emplace(static_cast<uint32_t>(owners.size()));
  const Plan plan{.workers = settings_.workers,
                  .steps = settings_.steps,
                  .deterministic = settings_.deterministic,
                  .evaluate_every = settings_.evaluate_every,
                  .optimizer = settings_.optimizer,
                  .schedule = settings_.schedule,
                  .tensors = layout_->tensors(),
                  .blocks = blocks_};
  for (const auto& [shard, address] : shard_addresses_) {
    out.messages.push_back({{Role::kShard, shard, Lane::kControl}, control_frame(plan)});
  }
  for (const WorkerId worker : joined_) send_welcome(Role::kWorker, worker, out);
  if (evaluator_here_) send_welcome(Role::kEvaluator, 0, out);
}

void Coordinator::send_welcome(Role role, uint32_t index, CoordinatorOutput& out) {
  Welcome welcome{.shards = {},
                  .blocks = blocks_,
                  .steps = settings_.steps,
                  .evaluate_every = settings_.evaluate_every};
  for (const auto& [shard, address] : shard_addresses_) welcome.shards.push_back(address);
  out.messages.push_back({{role, index, Lane::kControl}, control_frame(std::move(welcome))});
}

Status Coordinator::on_message(Role role, uint32_t index, const Control& message, TimePoint now,
                               CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return done();
  const std::string name = peer_name(role, index);
  if (std::holds_alternative<Ready>(message)) {
    if (role == Role::kShard) shards_ready_.insert(index);
    if (role == Role::kWorker) workers_ready_.insert(index);
    begin_if_ready(now, out);
  } else if (const auto* closed = std::get_if<StepClosed>(&message);
             closed && role == Role::kShard) {
    return on_step_closed(index, *closed, now, out);
  } else if (const auto* report = std::get_if<StepReport>(&message);
             report && role == Role::kWorker && ledger_) {
    ledger_->on_report(index, *report);
    tell_steps(false, now, out);
  } else if (const auto* evaluated = std::get_if<Evaluated>(&message);
             evaluated && role == Role::kEvaluator) {
    on_evaluated(*evaluated, now, out);
  } else if (const auto* farewell = std::get_if<Farewell>(&message)) {
    on_lost(role, index, farewell->reason, now, out);
  } else {
    return invalid_input(name + " sent a message that only others send");
  }
  return done();
}

void Coordinator::begin_if_ready(TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kGathering || shards_ready_.size() < settings_.shards) return;
  if (settings_.evaluator && !evaluator_here_ && !evaluator_lost_) return;
  for (const WorkerId worker : members_.list()) {
    if (!workers_ready_.contains(worker)) return;
  }
  phase_ = Phase::kTraining;
  training_began_ = now;
  open_step(now, out);
}

void Coordinator::open_step(TimePoint now, CoordinatorOutput& out) {
  ledger_->open(step_, since_start(now), members_.list(), learning_rate(settings_.schedule, step_));
  decide(out);
}

void Coordinator::decide(CoordinatorOutput& out) {
  cutoff_ = members_.count();
  const std::string reason = "sync: waits for all " + std::to_string(cutoff_) + " workers alive";
  out.happenings.push_back(
      DecisionRecord{.step = step_, .cutoff = cutoff_, .alive = cutoff_, .reason = reason});
  send_decision(out);
}

void Coordinator::send_decision(CoordinatorOutput& out) {
  const Decision decision{.step = step_, .cutoff = cutoff_, .alive = members_.list()};
  for (const auto& [shard, address] : shard_addresses_) {
    out.messages.push_back({{Role::kShard, shard, Lane::kControl}, control_frame(decision)});
  }
}

Status Coordinator::on_step_closed(ShardId shard, const StepClosed& closed, TimePoint now,
                                   CoordinatorOutput& out) {
  if (phase_ == Phase::kTraining && closed.step > step_ && closed.step < settings_.steps &&
      early_.size() < size_t{settings_.shards} * kEarlyMax) {
    early_.emplace_back(shard, closed);
    return done();
  }
  if (phase_ != Phase::kTraining || !ledger_->expects(shard, closed.step)) {
    return invalid_input("shard " + std::to_string(shard) + " closed step " +
                         std::to_string(closed.step) + ", which was not open there");
  }
  digest_ += closed.digest;
  const bool all = ledger_->on_closed(shard, closed, since_start(now));
  for (const ArrivalRecord& late : ledger_->take_late()) out.happenings.push_back(late);
  if (all) close_step_everywhere(closed.step, now, out);
  return done();
}

void Coordinator::close_step_everywhere(Step closed, TimePoint now, CoordinatorOutput& out) {
  // Whoever has not delivered need not go on.
  for (const WorkerId worker : ledger_->stragglers(closed)) {
    out.messages.push_back(
        {to_worker(worker, Lane::kControl), Frame{{.type = FrameType::kStop, .step = closed}, {}}});
  }
  ++step_;
  if (step_ == settings_.steps) {
    tell_steps(false, now, out);
    if (phase_ == Phase::kTraining) finish_training(now, out);
    return;
  }
  open_step(now, out);
  tell_steps(false, now, out);
  for (const auto& [shard, early] : std::exchange(early_, {})) {
    if (!on_step_closed(shard, early, now, out)) return;
  }
}

void Coordinator::tell_steps(bool all, TimePoint now, CoordinatorOutput& out) {
  if (!ledger_) return;
  bool diverged = false;
  for (StepStory& story : ledger_->take_told(all)) {
    const StepRecord& step = story.step;
    empty_steps_ = step.contributors == 0 && step.refused > 0 ? empty_steps_ + 1 : 0;
    std::map<WorkerId, BlockId> first_refused;
    for (const StepClosed::Refused& refused : story.refused)
      first_refused.try_emplace(refused.worker, refused.block);
    const Step number = step.step;
    out.happenings.push_back(std::move(story));
    for (const auto& [worker, block] : first_refused) {
      const std::string tensor = block < blocks_.blocks.size()
                                     ? layout_->tensors()[blocks_.blocks[block].tensor].name
                                     : "?";
      out.happenings.push_back(EventRecord{.at = since_start(now),
                                           .step = number,
                                           .kind = "refused",
                                           .peer = peer_name(Role::kWorker, worker),
                                           .text = "its gradient has NaN or infinity, first in " +
                                                   tensor + "; the step goes on without it"});
    }
    diverged = diverged || empty_steps_ >= kEmptyStepsMax;
  }
  if (diverged && phase_ == Phase::kTraining) {
    end(RunOutcome::kFailed,
        "training diverged: every gradient of the last " + std::to_string(kEmptyStepsMax) +
            " steps had NaN or infinity. Try a lower learning rate (--lr) or a warm-up (--warmup)",
        now, out);
  }
}

void Coordinator::finish_training(TimePoint now, CoordinatorOutput& out) {
  training_ended_ = now;
  for (const WorkerId worker : members_.list())
    send_farewell(Role::kWorker, worker, Farewell{}, out);
  phase_ = Phase::kEvaluating;
  if (!evaluator_here_ || evaluator_lost_ || evaluated_last_)
    end(RunOutcome::kCompleted, "", now, out);
}

void Coordinator::on_evaluated(const Evaluated& evaluated, TimePoint now, CoordinatorOutput& out) {
  out.happenings.push_back(EvaluationRecord{.version = evaluated.version,
                                            .at = since_start(now),
                                            .loss = evaluated.loss,
                                            .accuracy = evaluated.accuracy,
                                            .samples = evaluated.samples});
  evaluated_last_ = evaluated_last_ || evaluated.version == settings_.steps;
  if (phase_ == Phase::kEvaluating && evaluated_last_) end(RunOutcome::kCompleted, "", now, out);
}

void Coordinator::on_lost(Role role, uint32_t index, const std::string& why, TimePoint now,
                          CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return;
  const std::string name = peer_name(role, index);
  switch (role) {
    case Role::kWorker:
      return lose_worker(index, why, now, out);
    case Role::kEvaluator:
      evaluator_lost_ = true;
      say("lost", name, why + "; the run goes on without evaluation", now, out);
      if (phase_ == Phase::kEvaluating) return end(RunOutcome::kCompleted, "", now, out);
      return begin_if_ready(now, out);
    case Role::kShard:
      say("lost", name, why, now, out);
      return end(RunOutcome::kFailed,
                 name + " was lost at step " + std::to_string(step_) + " (" + why +
                     "); its part of the parameters is gone, so the run cannot go on",
                 now, out);
    case Role::kCoordinator:
      return;
  }
}

void Coordinator::lose_worker(WorkerId worker, const std::string& why, TimePoint now,
                              CoordinatorOutput& out) {
  if (phase_ == Phase::kEvaluating || !members_.remove(worker)) return;  // it was told to go
  const bool others = members_.count() > 0;
  say("lost", peer_name(Role::kWorker, worker), others ? why + "; the run goes on without it" : why,
      now, out);
  if (!others)
    return end(RunOutcome::kFailed, "all workers are gone; the last was lost: " + why, now, out);
  // The cutoff stays: what the lost one has already delivered counts towards it, and must not crowd
  // out the others.
  if (phase_ == Phase::kTraining) return send_decision(out);
  begin_if_ready(now, out);
}

void Coordinator::on_tick(TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kGathering || since_start(now) < settings_.join_timeout) return;
  const std::string waited = "did not join within " +
                             std::to_string(static_cast<int>(seconds(settings_.join_timeout))) +
                             " s";
  for (ShardId shard = 0; shard < settings_.shards; ++shard) {
    if (!shards_ready_.contains(shard) && !shard_addresses_.contains(shard)) {
      return end(RunOutcome::kFailed, peer_name(Role::kShard, shard) + " " + waited, now, out);
    }
  }
  if (settings_.evaluator && !evaluator_here_ && !evaluator_lost_)
    on_lost(Role::kEvaluator, 0, waited, now, out);
  for (const WorkerId worker : members_.list()) {
    if (workers_ready_.contains(worker) || ended()) continue;
    send_farewell(Role::kWorker, worker, {RunOutcome::kFailed, "it " + waited}, out);
    lose_worker(worker, waited, now, out);
  }
  if (phase_ == Phase::kGathering) {
    end(RunOutcome::kFailed,
        "not everybody was ready to train within " +
            waited.substr(sizeof("did not join within ") - 1),
        now, out);
  }
}

void Coordinator::on_interrupt(TimePoint now, CoordinatorOutput& out) {
  if (phase_ == Phase::kEnded) return;
  end(RunOutcome::kInterrupted,
      "interrupted at step " + std::to_string(step_) + " of " + std::to_string(settings_.steps),
      now, out);
}

void Coordinator::on_failure(const std::string& why, TimePoint now, CoordinatorOutput& out) {
  if (phase_ != Phase::kEnded) end(RunOutcome::kFailed, why, now, out);
}

void Coordinator::end(RunOutcome outcome, const std::string& reason, TimePoint now,
                      CoordinatorOutput& out) {
  if (phase_ == Phase::kTraining) training_ended_ = now;
  const bool trained = phase_ != Phase::kGathering;
  phase_ = Phase::kEnded;
  tell_steps(true, now, out);
  const Farewell farewell{.outcome = outcome, .reason = reason};
  for (const auto& [shard, address] : shard_addresses_)
    send_farewell(Role::kShard, shard, farewell, out);
  for (const WorkerId worker : joined_) send_farewell(Role::kWorker, worker, farewell, out);
  if (evaluator_here_) send_farewell(Role::kEvaluator, 0, farewell, out);
  say("ended", "", reason.empty() ? "completed" : reason, now, out);
  out.happenings.push_back(
      RunEnd{.outcome = outcome,
             .reason = reason,
             .elapsed = trained ? training_ended_ - training_began_ : Duration::zero(),
             .parameters_digest = digest_,
             .memory_bytes = {}});
}

void Coordinator::say(const std::string& kind, const std::string& peer, const std::string& text,
                      TimePoint now, CoordinatorOutput& out) const {
  out.happenings.push_back(
      EventRecord{.at = since_start(now), .step = step_, .kind = kind, .peer = peer, .text = text});
}

void Coordinator::send_farewell(Role role, uint32_t index, const Farewell& farewell,
                                CoordinatorOutput& out) const {
  out.messages.push_back({{role, index, Lane::kControl}, control_frame(farewell)});
}

}  // namespace drover

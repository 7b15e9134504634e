// The coordinator's part in each step: opening, deciding, closing, telling.
#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"
#include "core/block_share.h"
#include "wire/limits.h"

namespace drover {
namespace {

// Beyond this a limit is none: no step takes a year.
constexpr double kTimeLimitMax = 365.0 * 24 * 3600;

// Zero on the wire means that there is none, so the shortest limit is a nanosecond.
Duration wire_time_limit(double limit) {
  if (!(limit < kTimeLimitMax)) return Duration::zero();
  return std::max(Duration(1), from_seconds(limit));
}

// After the last step.
constexpr Duration kReportPatience = std::chrono::seconds(1);
// ... and longer than a worker waits for the last parameters (node/live_session.cc).
constexpr Duration kLeavingPatience = std::chrono::seconds(8);
// ... and for the last checkpoint, which a slow disk may take long to write.
constexpr Duration kCheckpointPatience = std::chrono::minutes(10);
// How long a lost evaluator that is started again may take to come back when training has ended.
constexpr Duration kEvaluatorPatience = std::chrono::seconds(20);

// Between two reviews of a step, at least.
constexpr double kReviewPause = 1e-6;

bool wants_review(const Choice& choice) {
  return choice.review.arrivals < ~uint32_t{0} || choice.review.at < kNoTimeLimit;
}

// Arrivals that a shard tells of at a time: often enough to decide by, and never thousands a step.
uint32_t news_every(size_t workers) { return static_cast<uint32_t>(1 + workers / 64); }

}  // namespace

void Coordinator::open_step(TimePoint now, CoordinatorOutput& out) {
  add_members(now, out);
  ledger_->open(step_, since_start(now), workers_.members().list(),
                learning_rate(model_.rules().schedule, step_));
  counted_on_ = workers_.members().list();
  std::erase_if(counted_on_, [&](WorkerId worker) { return orders_.is_busy(worker); });
  // With nobody else, whoever is busy has to do.
  if (counted_on_.empty()) counted_on_ = workers_.members().list();
  for (const WorkerId worker : workers_.members().list()) {
    if (orders_.is_busy(worker)) ledger_->on_busy(worker);
  }
  opened_ = now;
  decide(out);
  deal_shares(out);
  choose_pull(now, out);
}

// Whoever has come and is ready.
void Coordinator::add_members(TimePoint now, CoordinatorOutput& out) {
  for (const WorkerId worker : workers_.add_ready())
    report(Peer{Role::kWorker, worker}, event::Joined{}, now, out);
}

void Coordinator::decide(CoordinatorOutput& out) {
  // A step opens on a shard in the moment in which the one before closes there, so run-times
  // contain everything that a step costs: nothing is left over for `overhead`.
  const double noise = settings_.batch > 0 ? ledger_->noise_scale() / settings_.batch : 0.0;
  choice_ = decider_ ? decider_->decide({.step = step_,
                                         .alive = counted_on_,
                                         .overhead = 0.0,
                                         .noise = noise,
                                         .members = workers_.members().count()})
                     : free_choice();
  out.happenings.emplace_back(DecisionRecord{.step = step_,
                                             .cutoff = choice_.cutoff,
                                             .alive = workers_.members().count(),
                                             .reason = choice_.reason,
                                             .time_limit = wire_time_limit(choice_.time_limit),
                                             .at = {},
                                             .expected = std::exchange(choice_.expected, {}),
                                             .model_stale = choice_.model_stale});
  if (wants_review(choice_)) arrivals_.open(counted_on_, ledger_->shards());
  send_decision(out);
}

void Coordinator::on_arrived(ShardId shard, const Arrived& arrived, TimePoint now,
                             CoordinatorOutput& out) {
  if (phase_ != Phase::kTraining || arrived.step != step_ || !wants_review(choice_)) return;
  arrivals_.on_arrived(shard, arrived, ledger_->lead(shard));
  if (arrivals_.here() >= choice_.review.arrivals) review(now, out);
}

std::optional<TimePoint> Coordinator::wake_at() const {
  if (phase_ == Phase::kEvaluating && !owe_reports().empty())
    return training_ended_ + kReportPatience;
  if (phase_ == Phase::kEvaluating && await_leaving()) return training_ended_ + kLeavingPatience;
  if (phase_ == Phase::kEvaluating && checkpoints_.awaits_last())
    return training_ended_ + kCheckpointPatience;
  if (phase_ == Phase::kEvaluating && await_evaluator())
    return std::max(training_ended_, *evaluator_.lost_since()) + kEvaluatorPatience;
  if (phase_ != Phase::kTraining || step_ == settings_.steps) return std::nullopt;
  if (!(choice_.review.at < kTimeLimitMax)) return std::nullopt;
  return opened_ + from_seconds(choice_.review.at);
}

void Coordinator::on_time(TimePoint now, CoordinatorOutput& out) {
  const auto due = wake_at();
  if (!due || now < *due) return;
  if (phase_ == Phase::kTraining) return review(now, out);
  if (!owe_reports().empty()) {
    reports_given_up_ = true;
  } else if (await_leaving()) {
    leaving_given_up_ = true;
  } else if (!checkpoints_.awaits_last()) {
    evaluator_given_up_ = true;
  } else {
    if (auto event = checkpoints_.give_up_last()) report({}, *std::move(event), now, out);
  }
  dismiss_workers(now, out);
}

// Shards go by the last choice meanwhile: whether this comes in time or not, no step waits for it.
void Coordinator::review(TimePoint now, CoordinatorOutput& out) {
  const Choice before = choice_;
  choice_.review = {};
  if (arrivals_.here() == counted_on_.size()) return;
  double since = seconds(now - opened_);
  // News may have been quicker than that of the opening.
  for (const double time : arrivals_.times()) {
    if (time < kNoTimeLimit) since = std::max(since, time);
  }
  std::optional<Choice> revised =
      decider_->reconsider({.step = step_, .now = since, .arrived = arrivals_.times()});
  if (!revised) return;
  choice_ = std::move(*revised);
  // Time is in whole nanoseconds: a review too soon would be at the same moment, for ever.
  choice_.review.at = std::max(choice_.review.at, since + kReviewPause);
  if (choice_.cutoff == before.cutoff && choice_.time_limit == before.time_limit) return;
  out.happenings.emplace_back(DecisionRecord{.step = step_,
                                             .cutoff = std::min(choice_.cutoff, expected()),
                                             .alive = workers_.members().count(),
                                             .reason = choice_.reason,
                                             .time_limit = wire_time_limit(choice_.time_limit),
                                             // Zero is the decision that opened the step.
                                             .at = std::max(now - opened_, Duration(1)),
                                             .expected = {},
                                             .model_stale = choice_.model_stale});
  send_decision(out);
}

// Of the next step, so that workers know before they begin it. A worker that does not hear of it in
// time does what it did before: some samples are then seen twice or not at all in that step.
void Coordinator::deal_shares(CoordinatorOutput& out) {
  if (!decider_ || !decider_->balances()) return;
  const Step next = step_ + 1;
  const std::vector<WorkerId> members = workers_.members().list();
  const std::vector<uint32_t> samples = decider_->deal(next, members, settings_.batch);
  uint64_t first = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    Share share{.from = next, .first = first, .count = samples[i], .total = settings_.full_samples};
    first += samples[i];
    Share& sent = shares_[members[i]];
    const bool same = sent.first == share.first && sent.count == share.count;
    if (same && sent.total == share.total) continue;
    sent = share;
    out.messages.push_back({to_worker(members[i], Lane::kControl), control_frame(share)});
  }
}

// Nothing is waited for: the number only says how many gradients make up a round.
Choice Coordinator::free_choice() const {
  const uint32_t alive = workers_.members().count();
  const std::string round =
      "every gradient is used as it comes, a step is as many as there are workers: " +
      std::to_string(alive);
  const auto& staleness = settings_.free_running->staleness;
  if (!staleness) return {.cutoff = alive, .reason = "async: " + round};
  return {.cutoff = alive,
          .reason = "ssp: " + round + "; the fastest at most " + std::to_string(*staleness) +
                    " ahead of the slowest"};
}

// Of those whom the choice counted on, how many are left.
uint32_t Coordinator::expected() const {
  const auto left = std::count_if(counted_on_.begin(), counted_on_.end(),
                                  [&](WorkerId worker) { return workers_.members().has(worker); });
  return left > 0 ? static_cast<uint32_t>(left) : workers_.members().count();
}

void Coordinator::send_decision(CoordinatorOutput& out) const {
  // Workers may have been lost since it was decided: never wait for more than there are.
  // The last step may be over for most, and not for all.
  Decision decision{.step = std::min(step_, settings_.steps - 1),
                    .cutoff = std::min(choice_.cutoff, expected()),
                    .time_limit = {},
                    .at_least = std::min(choice_.at_least, expected()),
                    .alive = workers_.members().list(),
                    .news_every = wants_review(choice_) ? news_every(counted_on_.size()) : 0,
                    .noise_scale = ledger_->noise_scale()};
  const Duration limit = wire_time_limit(choice_.time_limit);
  for (ShardId shard = 0; shard < settings_.shards; ++shard) {
    // A shard counts from its own opening.
    if (limit > Duration::zero()) decision.time_limit = limit + ledger_->lead(shard);
    out.messages.push_back({server_of(shard), control_frame(decision)});
  }
}

Status Coordinator::on_step_closed(ShardId shard, const StepClosed& closed, TimePoint now,
                                   CoordinatorOutput& out) {
  // Each shard closes one step after the other: what comes twice, or out of turn, breaks the
  // protocol, whether its step is open here yet or not.
  const auto next = next_closing_.find(shard);
  const bool ahead = closed.step > step_;
  if (phase_ != Phase::kTraining || next == next_closing_.end() || closed.step != next->second ||
      closed.step >= settings_.steps ||
      (ahead && early_.size() >= size_t{settings_.shards} * kEarlyMax)) {
    return invalid_input("shard " + std::to_string(shard) + " closed step " +
                         std::to_string(closed.step) + ", which was not open there");
  }
  ++next->second;
  if (ahead) {
    early_.push_back({shard, closed, now});
  } else {
    take_closing(shard, closed, now, out);
  }
  return done();
}

void Coordinator::take_closing(ShardId shard, const StepClosed& closed, TimePoint now,
                               CoordinatorOutput& out) {
  noise_before_ = ledger_->noise();
  digest_ += closed.digest;
  ledger_->on_closed(shard, closed, since_start(now));
  for (const LateRunTime& late : ledger_->take_late()) {
    orders_.on_late(late.step, late.worker);
    if (decider_ && !late.was_busy)
      decider_->learn_late(late.step, late.worker, seconds(late.run_time));
  }
  close_steps(now, out);
}

// Whether the next step may open: workers that need not wait for all blocks begin it when enough
// of them have closed this one.
bool Coordinator::enough_closed() const {
  if (ledger_->is_closed(step_)) return true;
  if (!settings_.pull.weak() || ledger_->steps_open_before(step_) >= kDecidedAheadMax) return false;
  uint32_t closed = 0;
  for (const auto& [shard, blocks] : blocks_->on_shards())
    closed += ledger_->is_closed_on(step_, shard) ? blocks : 0;
  return closed >= blocks_needed(pull_share_, blocks_->count());
}

void Coordinator::close_steps(TimePoint now, CoordinatorOutput& out) {
  while (phase_ == Phase::kTraining && step_ < settings_.steps && enough_closed()) {
    if (!ledger_->is_closed(step_)) ledger_->advance(step_, since_start(now));
    close_step(step_, now, out);
  }
  tell_steps(false, now, out);
  if (phase_ == Phase::kTraining && step_ == settings_.steps && ledger_->everything_closed())
    finish_training(now, out);
}

// Of the next step, as with shares of samples.
void Coordinator::choose_pull(TimePoint now, CoordinatorOutput& out) {
  if (!pull_choice_) return;
  const auto chosen = pull_choice_->decide(step_, choice_.cutoff, workers_.members().count());
  if (!chosen) return;
  pull_share_ = chosen->share;
  report({}, *chosen, now, out);
  for (const WorkerId worker : workers_.joined()) {
    out.messages.push_back({to_worker(worker, Lane::kControl),
                            control_frame(PullShare{.from = step_ + 1, .share = pull_share_})});
  }
}

void Coordinator::close_step(Step closed, TimePoint now, CoordinatorOutput& out) {
  if (decider_) {
    // Whoever has not delivered need not go on, unless we want to know how long it takes.
    const Frame stop{{.type = FrameType::kStop, .step = closed}, {}};
    const std::vector<WorkerId> stragglers = ledger_->stragglers(closed);
    orders_.on_closed(closed, stragglers);
    for (const WorkerId worker : stragglers) {
      if (workers_.members().has(worker) && orders_.stop(closed, worker, now))
        out.messages.push_back({to_worker(worker, Lane::kControl), stop});
    }
    decider_->learn(ledger_->times(closed, settings_.workers));
  }
  ++step_;
  if (step_ == settings_.steps) return;
  open_step(now, out);
  for (Early& early : std::exchange(early_, {})) {
    if (phase_ != Phase::kTraining) return;
    if (early.closed.step > step_) {
      early_.push_back(std::move(early));
    } else {
      take_closing(early.shard, early.closed, early.heard, out);
    }
  }
}

void Coordinator::tell_steps(bool all, TimePoint now, CoordinatorOutput& out) {
  if (!ledger_) return;
  for (const ArrivalRecord& late : ledger_->take_late_records(all))
    out.happenings.emplace_back(late);
  reporter_.report(ledger_->take_summaries(all), *blocks_, model_.rules().schedule.rule,
                   since_start(now), out.happenings);
  if (reporter_.diverged() && phase_ == Phase::kTraining) {
    end(RunOutcome::kFailed, EndCause::kDiverged,
        "training diverged: every gradient of the last " +
            std::to_string(StepReporter::kEmptyStepsMax) +
            " steps had NaN or infinity. Try a lower learning rate (--lr) or a warm-up (--warmup)",
        now, out);
  }
}

void Coordinator::finish_training(TimePoint now, CoordinatorOutput& out) {
  training_ended_ = now;
  phase_ = Phase::kEvaluating;
  dismiss_workers(now, out);
}

// Who has said all that it has to say may go; unless the run may start over before it has ended,
// and would need it again.
void Coordinator::dismiss_workers(TimePoint now, CoordinatorOutput& out) {
  if (settings_.recovers && !settings_.workers_bring_model) return end_if_complete(now, out);
  const std::set<WorkerId> owing = owe_reports();
  for (const WorkerId worker : workers_.joined()) {
    if (!owing.contains(worker) && dismissed_.insert(worker).second)
      send_farewell(Role::kWorker, worker, Farewell{}, out);
  }
  end_if_complete(now, out);
}

// Workers here of which a gradient was used, but not what they say of it: shards may tell of the
// last step's close before that. Not for long: one that was stopped would never say it.
std::set<WorkerId> Coordinator::owe_reports() const {
  std::set<WorkerId> owing;
  if (settings_.free_running || reports_given_up_) return owing;
  for (const WorkerId worker : ledger_->unreported()) {
    if (workers_.has_joined(worker)) owing.insert(worker);
  }
  return owing;
}

// Workers that bring the model keep it: they fetch its last version, and then leave by themselves.
bool Coordinator::await_leaving() const {
  return settings_.workers_bring_model && !workers_.joined().empty() && !leaving_given_up_;
}

// Whoever is lost from a run that recovers is started again, and has the last version still to
// measure and to save.
bool Coordinator::await_evaluator() const {
  return settings_.recovers && evaluator_.lost_since() && !evaluated_last_ && !evaluator_given_up_;
}

void Coordinator::end_if_complete(TimePoint now, CoordinatorOutput& out) {
  const bool evaluated = evaluated_last_ || !(evaluator_.is_here() || await_evaluator());
  if (phase_ == Phase::kEvaluating && evaluated && owe_reports().empty() && !await_leaving() &&
      !checkpoints_.awaits_last())
    end(RunOutcome::kCompleted, EndCause::kCompleted, "", now, out);
}

}  // namespace drover

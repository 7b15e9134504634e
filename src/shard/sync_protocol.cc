#include "shard/sync_protocol.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shard/shard_frames.h"

namespace drover {

SyncProtocol::SyncProtocol(ShardState& state)
    : ShardProtocol(state),
      rule_(state.plan.push_grace, state.plan.partial_pull, state.limits.undecided),
      least_push_(state.plan.workers, 0) {
  for (auto& [id, hosted] : state.blocks) blocks_.push_back({*hosted, StepPushes(state.members)});
  if (state.plan.partial_pull) sent_.emplace(state.plan.workers, blocks_.size());
}

void SyncProtocol::on_joined(WorkerId worker) {
  least_push_[worker] = 0;
  if (sent_) sent_->on_joined(worker);
}

void SyncProtocol::on_lost(WorkerId worker) {
  for (Collected& each : blocks_) {
    each.pushes.stop_expecting(worker);
    each.early.forget(worker);
  }
}

void SyncProtocol::on_members_changed(TimePoint, Outbox&) {
  for (Collected& each : blocks_) each.pushes.on_members_changed(state_.members);
}

void SyncProtocol::on_decision(const Decision& decision, TimePoint now, Outbox& out) {
  if (rule_.on_decision(decision, state_.tally.step())) note_undecided(decision.step, now);
  report_arrivals(out);
  settle_all(now, out);
}

// The first decision about a step has arrived. Notes how long blocks that could have closed have
// waited for it. (A step with the pushes of all members closes without a decision.)
void SyncProtocol::note_undecided(Step step, TimePoint now) {
  Duration longest{};
  for (const Collected& each : blocks_) {
    if (each.hosted.block.version() != step) continue;
    if (const auto since = rule_.enough_since(collecting(each)))
      longest = std::max(longest, now - *since);
  }
  if (longest > Duration::zero()) state_.tally.on_undecided(step, longest);
}

void SyncProtocol::report_arrivals(Outbox& out) {
  const std::optional<Decision>& decision = rule_.last();
  if (!decision || decision->step != state_.tally.step()) return;
  if (auto arrivals = state_.tally.take_unreported(decision->report_every))
    out.push_back({to_coordinator(), control_frame(std::move(*arrivals))});
}

// A worker that has just joined may push for a step in which it is not a member yet.
Answer SyncProtocol::judge(const Collected& each, const Push& push) const {
  if (push.step < each.hosted.block.version() || each.hosted.block.finished()) return Answer::kLate;
  if (each.pushes.answered(push.worker)) return Answer::kDuplicate;
  if (held_.is_frozen(each.hosted.index)) return Answer::kLate;
  return state_.members.has(push.worker) ? Answer::kAccepted : Answer::kLate;
}

Status SyncProtocol::on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) {
  Collected& each = blocks_[push.hosted.index];
  if (push.step > push.hosted.block.version()) {
    if (push.flags == 0) {
      keep_early(each, push, std::move(payload), out);
    } else {
      drop_early(push, out);
    }
    return done();
  }
  if ((push.flags & kHoldFlag) != 0 && judge(each, push) == Answer::kAccepted &&
      !held_.agrees(push.holds))
    return invalid_input("worker " + std::to_string(push.worker) +
                         " clips the gradients of other parameters in step " +
                         std::to_string(push.step) + " than the other workers do");
  if ((push.flags & kNothingFlag) != 0) {
    if (take(each, push, nullptr, now, out)) settle(each, now, out);
    return done();
  }
  if (!payload) return take_offer(each, push, now, out);
  on_block(push, std::move(payload), now, out);
  return done();
}

// An offer that cannot be used is answered at once, so that its bytes are not sent.
Status SyncProtocol::take_offer(Collected& each, const Push& push, TimePoint now, Outbox& out) {
  const Answer verdict = judge(each, push);
  if (verdict == Answer::kAccepted) {
    each.pushes.expect(push.worker);
    return enqueue(push, out);
  }
  if (verdict == Answer::kLate) state_.tally.on_late(push.worker, push.step, now);
  answer(push, verdict, out);
  return done();
}

void SyncProtocol::on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) {
  Collected& each = blocks_[push.hosted.index];
  if (payload) {
    if (take(each, push, std::move(payload), now, out)) settle(each, now, out);
    return;
  }
  state_.tally.on_late(push.worker, push.step, now);
  answer(push, Answer::kLate, out);
  if (push.step != push.hosted.block.version()) return;
  each.pushes.withdraw(push.worker, state_.members);
  settle(each, now, out);
}

Answer SyncProtocol::add_to(ShardBlock& block, const Push& push, ConstBuffer payload) {
  if ((push.flags & kNothingFlag) != 0) return Answer::kAccepted;
  if ((push.flags & kValuesFlag) != 0) return block.add_values(push.worker, std::move(payload));
  return block.add(push.worker, push.samples, std::move(payload));
}

bool SyncProtocol::take(Collected& each, const Push& push, ConstBuffer payload, TimePoint now,
                        Outbox& out) {
  ShardBlock& block = push.hosted.block;
  StepTally& tally = state_.tally;
  Answer verdict = judge(each, push);
  if (verdict == Answer::kAccepted) {
    verdict = add_to(block, push, std::move(payload));
    each.pushes.on_push(push.worker, verdict, now, state_.members);
    note_outlier(push, push.step, verdict);
    if ((push.flags & kHoldFlag) != 0) held_.hold(each.hosted.index, push.holds);
  }
  answer(push, verdict, out);
  if (verdict == Answer::kLate) tally.on_late(push.worker, push.step, now);
  if (verdict == Answer::kLate || verdict == Answer::kDuplicate) return false;
  if (verdict == Answer::kNotFinite) tally.on_refused(push.worker, push.step, block.block().id);
  if (tally.on_block(push.worker, push.step, now)) report_arrivals(out);
  return true;
}

// Keeps only the newest push of each worker: a worker that pushes again has passed the step of its
// older push, so that step has closed elsewhere.
void SyncProtocol::keep_early(Collected& each, const Push& push, ConstBuffer payload, Outbox& out) {
  const EarlyPush* const kept = each.early.of(push.worker);
  const bool older = kept != nullptr && push.step < kept->step;
  if (push.step >= state_.plan.steps || !state_.members.has(push.worker) || older)
    return drop_early(push, out);
  if (kept != nullptr) {
    if (push.step == kept->step) return answer(push, Answer::kDuplicate, out);
    drop_early({kept->worker, kept->step, kept->samples, push.hosted}, out);
  }
  each.early.keep({push.worker, push.step, push.samples, std::move(payload)});
}

// A push was dropped before its step has opened here. It counts as late.
void SyncProtocol::drop_early(const Push& push, Outbox& out) {
  if (push.step < state_.plan.steps) state_.tally.on_dropped(push.worker, push.step);
  answer(push, Answer::kLate, out);
}

// The block has reached the step of an early push, which now counts as if it arrived now.
bool SyncProtocol::take_early(Collected& each, EarlyPush early, TimePoint now, Outbox& out) {
  const Push push{early.worker, early.step, early.samples, each.hosted};
  if (early.payload) return take(each, push, std::move(early.payload), now, out);
  // If the worker has too many open offers, this one is answered; its next offer is the error.
  if (!take_offer(each, push, now, out)) answer(push, Answer::kLate, out);
  return false;
}

CutoffRule::Collecting SyncProtocol::collecting(const Collected& each) const {
  const Step step = each.hosted.block.version();
  const bool open = step == state_.tally.step() && !state_.finished();
  return {.step = step,
          .pushes = each.pushes,
          .members = state_.members,
          .opened = open ? std::optional(state_.tally.opened()) : std::nullopt};
}

bool SyncProtocol::may_close(const Collected& each, TimePoint now) const {
  // Without members the run is over: a step without workers does not close.
  return state_.open && state_.members.count() > 0 && each.hosted.block.collects() &&
         !held_.is_frozen(each.hosted.index) && rule_.may_close(collecting(each), now);
}

void SyncProtocol::settle_all(TimePoint now, Outbox& out) {
  for (Collected& each : blocks_) settle(each, now, out);
  release_abandoned(now, out);
}

void SyncProtocol::settle(Collected& each, TimePoint now, Outbox& out) {
  bool changed = true;  // since the last may_close()
  while (true) {
    const Version version = each.hosted.block.version();
    if (std::exchange(changed, false) && may_close(each, now)) {
      close_or_hold(each, now, out);
    } else if (auto due = each.early.take(version)) {
      changed = take_early(each, std::move(*due), now, out);
    } else if (!each.released) {
      release_done(each);
      // Only with partial pulls can a worker be ahead of a block.
      if (!sent_) return;
      changed = true;
    } else if (auto late = each.early.take_before(version)) {
      take_early(each, std::move(*late), now, out);
    } else {
      return;
    }
  }
}

void SyncProtocol::close_or_hold(Collected& each, TimePoint now, Outbox& out) {
  const size_t index = each.hosted.index;
  if (!held_.holds(index)) return close(each, now, out);
  const ShardBlock::Norm norm = each.hosted.block.norm();
  held_.freeze(index, norm.squares, norm.largest);
  if (!held_.complete()) return;
  for (const WorkerId worker : state_.members.list()) {
    out.push_back({to_worker(worker, Lane::kControl),
                   control_frame(held_.norm(each.hosted.block.version()))});
  }
}

void SyncProtocol::on_release(const Release& release, TimePoint now, Outbox& out) {
  // Of several workers' the first one counts: they know the same norm.
  if (release.step == state_.tally.step() && held_.complete()) close_held(release, now, out);
}

void SyncProtocol::close_held(const Release& release, TimePoint now, Outbox& out) {
  for (const size_t index : held_.take()) {
    Collected& each = blocks_[index];
    if (!release.used) each.hosted.block.forget_gradients();
    close(each, now, out, release.scale);
    settle(each, now, out);
  }
}

// Workers that knew how to close the held blocks are lost, and the others will not know: their own
// gradients came too late to be in them. So none of these gradients is used.
void SyncProtocol::release_abandoned(TimePoint now, Outbox& out) {
  if (!held_.any_frozen()) return;
  const Step step = state_.tally.step();
  for (const WorkerId worker : state_.members.list()) {
    if (least_push_[worker] <= step) return;
  }
  close_held({.step = step, .used = false}, now, out);
}

// A block for which no worker had a gradient says nothing about the step: another optimizer than
// the block's may have made it.
void SyncProtocol::close(Collected& each, TimePoint now, Outbox& out, double scale) {
  ShardBlock& block = each.hosted.block;
  const Step step = block.version();
  const uint64_t samples = block.sum().samples();
  const uint32_t gradients = block.sum().contributors();
  const bool says_something = gradients > 0 || each.pushes.contributed() == 0;
  const RateTable::Update update = state_.rates.update_of(step, block.group(), samples);
  const NoiseEstimate noise = block.publish(update.rate, update.optimizer, scale);
  block.next_version(state_.members);
  if (says_something) state_.tally.on_block_closed(step, samples, gradients, noise);
  each.pushes.open_next(state_.members);
  each.released = false;
  // With partial pulls workers begin a step before the last block has closed the one before.
  if (sent_) state_.tally.open(block.version(), now);
  serve_waiting(each.hosted, now, out);
  for (const Offer& late : state_.offers.withdraw_late(block.block().id, block.version())) {
    state_.tally.on_late(late.worker, late.step, now);
    out.push_back(answer_frame(late.worker, late.step, block, Answer::kLate));
  }
  close_step_if_done(now, out);
}

void SyncProtocol::on_step_closing(StepClosed& closed) {
  state_.tally.add_arrivals(state_.members, closed);
  rule_.forget_before(closed.step + 1);
}

void SyncProtocol::release_done(Collected& each) {
  for (WorkerId worker = 0; worker < least_push_.size(); ++worker) {
    if (least_push_[worker] > each.hosted.block.version())
      each.pushes.release(worker, state_.members);
  }
  each.released = true;
}

void SyncProtocol::on_pull(WorkerId worker, uint32_t received) {
  if (sent_) sent_->on_pull(worker, received);
}

// A worker that pulls version v offers nothing more for earlier steps. Waiting for its push could
// deadlock: if another shard closed a step without that worker, the worker skips the step, and
// begins the next one only when this shard has closed it, too.
void SyncProtocol::on_done(WorkerId worker, Version version, TimePoint now, Outbox& out) {
  least_push_[worker] = version;
  for (Collected& each : blocks_) {
    if (each.hosted.block.version() >= version) continue;
    each.pushes.release(worker, state_.members);
    settle(each, now, out);
  }
  release_abandoned(now, out);
}

// With partial pulls a shard may always be a step behind, and would never have the pulled version
// in time. So a pull is answered with the newest version at once, and stays open until the pulled
// version was sent.
bool SyncProtocol::serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint, Outbox& out) {
  const Version version = hosted.block.version();
  if (sent_) {
    if (sent_->has(pull.worker, hosted.index, pull.version)) return true;
    if (!sent_->may_send(pull.worker, hosted.index, version)) return false;
    sent_->on_sent(pull.worker, hosted.index, version);
  } else if (version < pull.version) {
    return false;
  }
  out.push_back(parameters_frame(hosted.block, pull, version, hosted.block.parameters()));
  return version >= pull.version;
}

std::optional<TimePoint> SyncProtocol::wake_at() const {
  if (!state_.open || state_.finished() || !rule_.has_timer(state_.tally.step()))
    return std::nullopt;
  std::optional<TimePoint> next;
  for (const Collected& each : blocks_) {
    // It waits for a first gradient, or for a worker's Release.
    if (each.pushes.contributions().empty() || held_.is_frozen(each.hosted.index)) continue;
    if (const auto at = rule_.wake_at(collecting(each))) next = std::min(next.value_or(*at), *at);
    if (next && !rule_.has_grace()) break;  // the limit is the same for all blocks
  }
  return next;
}

void SyncProtocol::on_time(TimePoint now, Outbox& out) {
  for (Collected& each : blocks_) {
    if (!state_.open || state_.finished() || state_.members.count() == 0) return;
    if (held_.is_frozen(each.hosted.index)) continue;
    const auto due = rule_.enough_since(collecting(each));
    if (!due || now < *due) continue;
    close_or_hold(each, now, out);
    settle(each, now, out);
  }
}

size_t SyncProtocol::pending() const {
  size_t all = rule_.pending();
  for (const Collected& each : blocks_) all += each.early.size();
  return all;
}

}  // namespace drover

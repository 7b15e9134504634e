#include "shard/async_protocol.h"

#include <limits>
#include <utility>

#include "shard/shard_frames.h"

namespace drover {

AsyncProtocol::AsyncProtocol(ShardState& state)
    : ShardProtocol(state), clocks_(state.plan.workers, state.blocks.size(), state.plan.staleness) {
  for (auto& [id, hosted] : state.blocks)
    rounds_.push_back({*hosted, RoundPushes(state.plan.workers)});
}

void AsyncProtocol::on_joined(WorkerId worker) {
  for (Round& round : rounds_) round.pushes.on_joined(worker);
  clocks_.on_joined(worker);
}

void AsyncProtocol::on_lost(WorkerId) {}

void AsyncProtocol::on_members_changed(TimePoint now, Outbox& out) {
  for (const WorkerId worker : state_.members.list())
    clocks_.set_if_unknown(worker, state_.tally.step());
  if (clocks_.find_slowest(state_.members)) serve_all(now, out);
}

void AsyncProtocol::on_decision(const Decision&, TimePoint now, Outbox& out) {
  settle_all(now, out);
}

Answer AsyncProtocol::judge(const Round& round, const Push& push) const {
  if (round.pushes.has_all_before(push.step + 1, push.worker)) return Answer::kDuplicate;
  if (round.hosted.block.finished()) return Answer::kLate;
  return state_.members.has(push.worker) ? Answer::kAccepted : Answer::kLate;
}

Status AsyncProtocol::on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) {
  Round& round = rounds_[push.hosted.index];
  if ((push.flags & kHoldFlag) != 0)
    return invalid_input(
        "gradients can be clipped by their common norm only where workers wait for each other, and "
        "not with the policies async and ssp");
  if (payload || (push.flags & kNothingFlag) != 0) {
    on_block(push, std::move(payload), now, out);
    return done();
  }
  const Answer verdict = judge(round, push);
  if (verdict == Answer::kAccepted) return enqueue(push, out);
  on_answered(round, push, verdict, now, out);
  return done();
}

void AsyncProtocol::on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) {
  Round& round = rounds_[push.hosted.index];
  Answer verdict = judge(round, push);
  const bool nothing = (push.flags & kNothingFlag) != 0;
  if (verdict == Answer::kAccepted && nothing) round.pushes.on_answered(false, 0);
  if (verdict == Answer::kAccepted && !nothing)
    verdict = payload ? apply(round, push, std::move(payload)) : Answer::kLate;
  on_answered(round, push, verdict, now, out);
}

Answer AsyncProtocol::apply(Round& round, const Push& push, ConstBuffer payload) {
  ShardBlock& block = push.hosted.block;
  const Answer verdict = (push.flags & kValuesFlag) != 0
                             ? block.add_values(push.worker, std::move(payload))
                             : block.add(push.worker, push.samples, std::move(payload));
  if (verdict == Answer::kAccepted) {
    const auto update = state_.rates.update_of(block.version(), block.group(), push.samples);
    block.publish(update.rate, update.optimizer);
  }
  round.pushes.on_answered(verdict == Answer::kAccepted, push.samples);
  note_outlier(push, block.version(), verdict);
  return verdict;
}

void AsyncProtocol::on_answered(Round& round, const Push& push, Answer verdict, TimePoint now,
                                Outbox& out) {
  const ShardBlock& block = push.hosted.block;
  answer(push, verdict, out);
  if (verdict == Answer::kDuplicate) return;
  round.pushes.on_push(push.worker, push.step);
  if (verdict == Answer::kNotFinite)
    state_.tally.on_refused(push.worker, block.version(), block.block().id);
  const bool complete = clocks_.on_block(push.worker, push.step, verdict == Answer::kAccepted, now);
  if (complete && clocks_.find_slowest(state_.members)) serve_all(now, out);
  settle(round, now, out);
  serve_waiting(push.hosted, now, out);
}

void AsyncProtocol::settle_all(TimePoint now, Outbox& out) {
  for (Round& round : rounds_) settle(round, now, out);
}

void AsyncProtocol::settle(Round& round, TimePoint now, Outbox& out) {
  ShardBlock& block = round.hosted.block;
  const uint32_t members = state_.members.count();
  if (!state_.open || members == 0 || block.finished() || round.pushes.answered() < members) return;
  state_.tally.on_round_closed(block.version(), round.pushes.samples(), round.pushes.gradients());
  block.next_version(state_.members);
  round.pushes.open_next();
  serve_waiting(round.hosted, now, out);  // snapshots
  close_step_if_done(now, out);
}

void AsyncProtocol::on_step_closing(StepClosed& closed) {
  closed.arrivals = clocks_.take_arrivals(closed.step);
  // Each gradient was computed from different parameters.
  closed.signal = closed.noise = std::numeric_limits<double>::quiet_NaN();
}

void AsyncProtocol::on_pull(WorkerId worker, uint32_t) {
  clocks_.set_if_unknown(worker, state_.tally.step());
}

void AsyncProtocol::on_done(WorkerId, Version, TimePoint, Outbox&) {}

// The parameters sent to a worker always include its own gradients.
bool AsyncProtocol::serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint now,
                                 Outbox& out) {
  if (!rounds_[hosted.index].pushes.has_all_before(pull.version, pull.worker)) return false;
  if (!clocks_.may_begin(pull.version)) return false;
  clocks_.on_served(pull.worker, now);
  const ShardBlock& block = hosted.block;
  out.push_back(parameters_frame(block, pull, block.version(), block.parameters()));
  return true;
}

std::optional<TimePoint> AsyncProtocol::wake_at() const { return std::nullopt; }

void AsyncProtocol::on_time(TimePoint, Outbox&) {}

size_t AsyncProtocol::pending() const { return 0; }

}  // namespace drover

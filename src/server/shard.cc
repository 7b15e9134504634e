#include "server/shard.h"

#include <algorithm>

#include "core/check.h"
#include "server/kernels.h"
#include "wire/limits.h"

namespace drover {

Shard::Shard(ShardId id, size_t window_bytes, BufferPool::Make published)
    : id_(id), published_(std::move(published)), offers_(window_bytes) {}

void Shard::on_plan(const Plan& plan) {
  DROVER_CHECK(!plan_);
  plan_ = plan;
  members_ = Membership(plan.workers);
  least_push_.assign(plan.workers, 0);
  sent_.resize(plan.workers);
  for (const Block& block : plan.blocks.blocks) {
    if (block.shard != id_) continue;
    blocks_[block.id].block = std::make_unique<ShardBlock>(block, *plan_, &pool_, &published_);
  }
  if (plan.free_running) clocks_.emplace(plan.workers, blocks_.size(), plan.staleness);
}

void Shard::restore(const std::vector<SavedBlock>& saved) {
  DROVER_CHECK(plan_.has_value());
  DROVER_CHECK(!open_);
  DROVER_CHECK(connected_.empty());
  step_ = plan_->first_step;
  std::map<uint64_t, const SavedBlock*> by_offset;
  for (const SavedBlock& each : saved) by_offset[each.offset] = &each;
  for (auto& [id, hosted] : blocks_) {
    const auto found = by_offset.find(hosted.block->block().offset);
    DROVER_CHECK(found != by_offset.end());
    hosted.block->restore(*found->second, step_, members_);
  }
}

void Shard::on_joined(WorkerId worker, Outbox& out) {
  connected_.insert(worker);
  if (knows(worker)) {
    least_push_[worker] = 0;
    sent_[worker] = {};
    for (auto& [id, hosted] : blocks_) {
      hosted.block->forget_pushes(worker);
      hosted.sent.erase(worker);
    }
    if (clocks_) clocks_->on_joined(worker);
  }
  out.push_back({to_worker(worker, Lane::kControl), control_frame(Connected{})});
  request_initial(out);
}

void Shard::request_initial(Outbox& out) {
  const bool complete = std::all_of(blocks_.begin(), blocks_.end(), [](const auto& entry) {
    return entry.second.block->started();
  });
  if (complete) {
    if (!announced_ready_) out.push_back({to_coordinator(), control_frame(Ready{})});
    announced_ready_ = true;
    return;
  }
  if (initial_source_) return;
  const auto source = std::find_if(connected_.begin(), connected_.end(),
                                   [&](WorkerId worker) { return knows(worker); });
  if (source == connected_.end()) return;
  initial_source_ = *source;
  out.push_back({to_worker(*source, Lane::kControl), control_frame(WantInitial{})});
}

void Shard::on_lost(WorkerId worker, TimePoint now, Outbox& out) {
  connected_.erase(worker);
  offers_.forget(worker);
  for (auto& [id, hosted] : blocks_) {
    std::erase_if(hosted.waiting, [&](const Waiting& waiting) { return waiting.worker == worker; });
    if (knows(worker)) {
      hosted.block->stop_expecting(worker);
      hosted.block->forget_norms(worker);
    }
    hosted.early.erase(worker);
  }
  if (knows(worker)) forget_late(worker);
  if (initial_source_ == worker) {
    initial_source_.reset();
    request_initial(out);
  }
  if (members_.remove(worker)) {
    on_members_changed(now, out);
    close_complete(now, out);
  }
  grant_offers(out);
}

void Shard::on_members_changed(TimePoint now, Outbox& out) {
  for (auto& [id, hosted] : blocks_) hosted.block->on_members_changed(members_);
  if (!clocks_) return;
  for (const WorkerId worker : members_.list()) clocks_->place(worker, step_);
  if (clocks_->find_slowest(members_)) serve_all_waiting(now, out);
}

Status Shard::check_decision(const Decision& decision) const {
  if (!announced_ready_) return invalid_input("a decision before this shard was ready");
  if (decision.cutoff == 0) return invalid_input("a decision to wait for nobody");
  // The coordinator opens a step when all have closed the one before, or, where not all blocks are
  // waited for, some steps ahead of the slowest.
  const Step newest = step_ + (plan_->weak ? kDecidedAheadMax : 0);
  const bool closes = !blocks_.empty();  // a shard without blocks is at no step
  if (decision.step >= plan_->steps || (closes && decision.step > newest)) {
    return invalid_input("a decision about step " + std::to_string(decision.step) +
                         ", which has not begun (this shard is at " + std::to_string(step_) +
                         " of " + std::to_string(plan_->steps) + ")");
  }
  return done();
}

void Shard::on_decision(const Decision& decision, TimePoint now, Outbox& out) {
  const bool first = !decision_ || decision_->step != decision.step;
  decision_ = decision;
  if (plan_->weak && decision.step >= step_) decisions_[decision.step] = decision;
  const bool changed = update_members(decision.alive);
  if (!open_) {
    open_ = true;
    opened_[step_] = now;
    on_members_changed(now, out);
    serve_all_waiting(now, out);
  } else if (changed) {
    on_members_changed(now, out);
  }
  if (first) note_undecided(now);
  tell_news(out);
  close_complete(now, out);
  grant_offers(out);
}

// Returns whether anything is different.
bool Shard::update_members(const std::vector<WorkerId>& alive) {
  const std::set<WorkerId> named(alive.begin(), alive.end());
  bool changed = false;
  for (WorkerId worker = 0; worker < members_.size(); ++worker) {
    if (!named.contains(worker)) {
      changed = members_.remove(worker) || changed;
    } else if (connected_.contains(worker)) {
      // One whose connection is gone is lost, even if the coordinator does not know it yet.
      changed = members_.add(worker) || changed;
    }
  }
  return changed;
}

Result<size_t> Shard::payload_floats(WorkerId worker, const FrameHeader& header) const {
  const std::string who =
      worker == kEvaluator ? "the evaluator" : "worker " + std::to_string(worker);
  if (!plan_) return invalid_input(who + " sent a frame before this shard knows its blocks");
  switch (header.type) {
    case FrameType::kPull:
    case FrameType::kOwesNothing:
      return size_t{0};
    case FrameType::kOffer:
    case FrameType::kBlock: {
      const Hosted* hosted = find(header.block);
      if (hosted == nullptr) {
        return invalid_input(who + " pushed block " + std::to_string(header.block) +
                             ", which is not on this shard");
      }
      if (!knows(worker)) return invalid_input(who + " does not take part in this run");
      if (!hosted->block->started() && header.step != kInitialStep)
        return invalid_input(who + " pushed a gradient of parameters that are not there yet");
      if (header.samples == 0 && header.step != kInitialStep)
        return invalid_input(who + " pushed without samples");
      const ShardBlock& block = *hosted->block;
      const Version reached = block.version() + (plan_->weak ? kPushedAheadMax : 0);
      if (header.step != kInitialStep && header.step > reached && !clocks_) {
        return invalid_input(who + " pushed for step " + std::to_string(header.step) +
                             ", which has not begun (the block is at " +
                             std::to_string(block.version()) + ")");
      }
      const size_t bytes = block.block().length * bytes_of(header.number_type);
      // An offer in place says where the floats lie.
      const bool in_place = header.type == FrameType::kOffer && (header.flags & kInPlaceFlag) != 0;
      if (header.length == 0 && in_place) return static_cast<size_t>(block.block().length);
      // Any other says that a block is ready; an empty block says that it no longer is.
      if (header.length == 0) return size_t{0};
      if (header.length != bytes) {
        return invalid_input(who + " pushed " + std::to_string(header.length) +
                             " bytes for block " + std::to_string(header.block) + ", which has " +
                             std::to_string(bytes));
      }
      return static_cast<size_t>(block.block().length);
    }
    default:
      return invalid_input(who + " sent a frame of a type that shards do not take (" +
                           std::to_string(static_cast<int>(header.type)) + ")");
  }
}

Status Shard::on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload,
                       TimePoint now, Outbox& out) {
  const auto floats = payload_floats(worker, header);
  if (!floats) return floats.error();
  DROVER_CHECK(floats.value() == (payload ? payload->size() : 0));
  const bool pushes = header.type == FrameType::kOffer || header.type == FrameType::kBlock;
  if (header.step == kInitialStep && pushes) {
    if (worker != initial_source_) {
      return invalid_input("worker " + std::to_string(worker) +
                           " sent initial parameters that were not asked for");
    }
    if (payload && !all_finite(payload->span())) {
      return invalid_input("the initial parameters of worker " + std::to_string(worker) +
                           " have NaN or infinity");
    }
  }
  switch (header.type) {
    case FrameType::kOffer:
      if (const Status taken = on_offer(worker, header, std::move(payload), now, out); !taken)
        return taken;
      break;
    case FrameType::kBlock:
      if (!offers_.take(worker, header.step, header.block)) {
        return invalid_input("worker " + std::to_string(worker) +
                             " sent a block that was not asked for");
      }
      on_block(worker, header, std::move(payload), now, out);
      break;
    case FrameType::kOwesNothing:
      on_owes_nothing(worker, header.version, now, out);
      break;
    default:
      on_pull(worker, header, now, out);
      break;
  }
  grant_offers(out);
  return done();
}

// Who has just come (back) may have parameters of a step in which it is not a member yet.
Answer Shard::judge(const ShardBlock& block, Step step, WorkerId worker) const {
  const Answer verdict = block.judge(step, worker);
  return verdict == Answer::kAccepted && !members_.has(worker) ? Answer::kLate : verdict;
}

Status Shard::on_offer(WorkerId worker, const FrameHeader& header, ConstBuffer payload,
                       TimePoint now, Outbox& out) {
  if (is_early(header)) {
    keep_early(worker, header, std::move(payload), out);
    return done();
  }
  if (payload) {
    on_block(worker, header, std::move(payload), now, out);
    return done();
  }
  Hosted& hosted = *find(header.block);
  if (header.step != kInitialStep) {
    // A push that cannot count is answered at once: its bytes need not move.
    const Answer verdict = judge(*hosted.block, header.step, worker);
    if (verdict != Answer::kAccepted) {
      if (clocks_) {
        on_free_block(worker, header, nullptr, now, out);
        return done();
      }
      if (verdict == Answer::kLate) note_late(worker, header.step, now);
      answer(worker, header.step, hosted, verdict, out);
      return done();
    }
    if (!clocks_) hosted.block->expect(worker);
  }
  switch (offers_.add({.worker = worker,
                       .step = header.step,
                       .block = header.block,
                       .bytes = hosted.block->block().length * sizeof(float)})) {
    case OfferQueue::Added::kYes:
      break;
    case OfferQueue::Added::kAgain:
      answer(worker, header.step, hosted, Answer::kDuplicate, out);
      break;
    case OfferQueue::Added::kTooMany:
      return invalid_input("worker " + std::to_string(worker) + " offers block " +
                           std::to_string(header.block) + " again and again, and never sends it");
  }
  return done();
}

void Shard::on_block(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                     Outbox& out) {
  if (clocks_ && header.step != kInitialStep)
    return on_free_block(worker, header, std::move(payload), now, out);
  Hosted& hosted = *find(header.block);
  if (!payload) {
    // The worker has gone on to another step before this one's bytes were sent.
    if (header.step != kInitialStep) note_late(worker, header.step, now);
    answer(worker, header.step, hosted, Answer::kLate, out);
    if (header.step != hosted.block->version()) return;
    hosted.block->withdraw(worker, members_);
    return close_if_complete(hosted, now, out);
  }
  if (header.step == kInitialStep) {
    const bool first = !hosted.block->started();
    if (first) hosted.block->start(payload->span(), members_);
    answer(worker, header.step, hosted, first ? Answer::kAccepted : Answer::kDuplicate, out);
    return request_initial(out);
  }
  Answer verdict = judge(*hosted.block, header.step, worker);
  if (verdict == Answer::kAccepted) {
    verdict = hosted.block->push(header.step, worker, header.samples, std::move(payload), members_);
    note_outlier(worker, header.step, *hosted.block, verdict);
  }
  answer(worker, header.step, hosted, verdict, out);
  if (verdict == Answer::kLate) return note_late(worker, header.step, now);
  if (verdict == Answer::kDuplicate) return;
  Progress& progress = progress_of(header.step);
  ++progress.blocks[worker];
  progress.run_time[worker] = since_opening(header.step, now);
  if (verdict == Answer::kNotFinite) {
    progress.refused.push_back({worker, header.block});
  } else if (verdict == Answer::kAccepted) {
    hosted.contributed_at.push_back(now);
  }
  if (header.step == step_ && progress.blocks[worker] == blocks_.size()) note_arrival(worker, out);
  close_if_complete(hosted, now, out);
}

// A gradient where workers run freely: it is applied at once, and its worker goes on. Without
// `payload` it is one that cannot be used.
void Shard::on_free_block(WorkerId worker, const FrameHeader& header, ConstBuffer payload,
                          TimePoint now, Outbox& out) {
  Hosted& hosted = *find(header.block);
  ShardBlock& block = *hosted.block;
  const Step round = block.version();
  Answer verdict = judge(block, header.step, worker);
  if (verdict == Answer::kAccepted) {
    verdict = payload ? block.apply(header.step, worker, header.samples, std::move(payload),
                                    rate_of(round, header.samples))
                      : Answer::kLate;
    if (verdict != Answer::kLate) note_outlier(worker, round, block, verdict);
  }
  answer(worker, header.step, hosted, verdict, out);
  if (verdict == Answer::kDuplicate) return;
  if (verdict == Answer::kLate) block.pass_over(header.step, worker);
  if (verdict == Answer::kNotFinite) progress_of(round).refused.push_back({worker, header.block});
  const bool whole = clocks_->on_block(worker, header.step, verdict == Answer::kAccepted, now);
  if (whole && clocks_->find_slowest(members_)) serve_all_waiting(now, out);
  close_if_complete(hosted, now, out);
  serve_waiting(hosted, now, out);
}

void Shard::answer(WorkerId worker, Step step, const Hosted& hosted, Answer answer,
                   Outbox& out) const {
  out.push_back({to_worker(worker, Lane::kControl), Frame{{.type = FrameType::kAnswer,
                                                           .step = step,
                                                           .version = hosted.block->version(),
                                                           .worker = worker,
                                                           .block = hosted.block->block().id,
                                                           .answer = answer},
                                                          {}}});
}

void Shard::grant_offers(Outbox& out) {
  for (const Offer& offer : offers_.grant()) {
    out.push_back({to_worker(offer.worker, Lane::kControl), Frame{{.type = FrameType::kGrant,
                                                                   .step = offer.step,
                                                                   .worker = offer.worker,
                                                                   .block = offer.block},
                                                                  {}}});
  }
}

Shard::Hosted* Shard::find(BlockId id) {
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? nullptr : &found->second;
}

const Shard::Hosted* Shard::find(BlockId id) const {
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? nullptr : &found->second;
}

}  // namespace drover

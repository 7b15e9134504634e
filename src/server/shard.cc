#include "server/shard.h"

#include <algorithm>
#include <bit>

#include "core/chance.h"
#include "core/check.h"
#include "server/kernels.h"
#include "wire/limits.h"

namespace drover {
namespace {

constexpr size_t kOpeningsKept = 1024;
constexpr size_t kStragglersKept = 100'000;

}  // namespace

Shard::Shard(ShardId id, size_t window_bytes) : id_(id), offers_(window_bytes) {}

void Shard::on_plan(const Plan& plan) {
  DROVER_CHECK(!plan_);
  plan_ = plan;
  members_ = Membership(plan.workers);
  for (const Block& block : plan.blocks.blocks) {
    if (block.shard != id_) continue;
    blocks_[block.id] = Hosted{std::make_unique<ShardBlock>(block, *plan_, &pool_), {}};
  }
}

void Shard::on_joined(WorkerId worker, Outbox& out) {
  connected_.insert(worker);
  out.push_back({to_worker(worker, Lane::kControl), control_frame(Welcome{})});
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
                                   [&](WorkerId worker) { return members_.has(worker); });
  if (source == connected_.end()) return;
  initial_source_ = *source;
  out.push_back({to_worker(*source, Lane::kControl), control_frame(WantInitial{})});
}

void Shard::on_lost(WorkerId worker, TimePoint now, Outbox& out) {
  connected_.erase(worker);
  offers_.forget(worker);
  for (auto& [id, hosted] : blocks_) {
    std::erase_if(hosted.waiting, [&](const Waiting& waiting) { return waiting.worker == worker; });
  }
  if (initial_source_ == worker) {
    initial_source_.reset();
    request_initial(out);
  }
  if (members_.remove(worker)) {
    for (auto& [id, hosted] : blocks_) hosted.block->on_members_changed(members_);
    for (auto& [id, hosted] : blocks_) close_if_complete(hosted, now, out);
  }
  grant_offers(out);
}

void Shard::on_decision(const Decision& decision, TimePoint now, Outbox& out) {
  decision_ = decision;
  const std::set<WorkerId> alive(decision.alive.begin(), decision.alive.end());
  bool changed = false;
  for (WorkerId worker = 0; worker < members_.size(); ++worker) {
    if (!alive.contains(worker)) changed = members_.remove(worker) || changed;
  }
  if (!open_) {
    open_ = true;
    opened_[0] = now;
    for (auto& [id, hosted] : blocks_) serve_waiting(hosted, out);
  }
  for (auto& [id, hosted] : blocks_) {
    if (changed) hosted.block->on_members_changed(members_);
  }
  for (auto& [id, hosted] : blocks_) close_if_complete(hosted, now, out);
}

Result<size_t> Shard::payload_floats(WorkerId worker, const FrameHeader& header) const {
  const std::string who =
      worker == kEvaluator ? "the evaluator" : "worker " + std::to_string(worker);
  if (!plan_) return invalid_input(who + " sent a frame before this shard knows its blocks");
  switch (header.type) {
    case FrameType::kPull:
      return size_t{0};
    case FrameType::kOffer:
    case FrameType::kBlock: {
      const Hosted* hosted = find(header.block);
      if (hosted == nullptr) {
        return invalid_input(who + " pushed block " + std::to_string(header.block) +
                             ", which is not on this shard");
      }
      if (!members_.has(worker)) return invalid_input(who + " does not take part in this run");
      if (header.samples == 0 && header.step != kInitialStep)
        return invalid_input(who + " pushed without samples");
      const ShardBlock& block = *hosted->block;
      if (header.step != kInitialStep && header.step > block.version()) {
        return invalid_input(who + " pushed for step " + std::to_string(header.step) +
                             ", which has not begun (the block is at " +
                             std::to_string(block.version()) + ")");
      }
      const size_t bytes = block.block().length * sizeof(float);
      // An offer says that a block is ready; an empty block says that it no longer is.
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

Status Shard::on_frame(WorkerId worker, const FrameHeader& header, SharedBuffer payload,
                       TimePoint now, Outbox& out) {
  const auto floats = payload_floats(worker, header);
  if (!floats) return floats.error();
  DROVER_CHECK(floats.value() == (payload ? payload->size() : 0));
  if (header.step == kInitialStep && header.type != FrameType::kPull) {
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
      on_offer(worker, header, std::move(payload), now, out);
      break;
    case FrameType::kBlock:
      if (!offers_.take(worker, header.step, header.block)) {
        return invalid_input("worker " + std::to_string(worker) +
                             " sent a block that was not asked for");
      }
      on_block(worker, header, std::move(payload), now, out);
      break;
    default:
      on_pull(worker, header, out);
      break;
  }
  grant_offers(out);
  return done();
}

void Shard::on_offer(WorkerId worker, const FrameHeader& header, SharedBuffer payload,
                     TimePoint now, Outbox& out) {
  if (payload) return on_block(worker, header, std::move(payload), now, out);
  Hosted& hosted = *find(header.block);
  if (header.step != kInitialStep) {
    // A push that cannot count is answered at once: its bytes need not move.
    const Answer verdict = hosted.block->judge(header.step, worker);
    if (verdict != Answer::kAccepted) {
      if (verdict == Answer::kLate) note_late(worker, header.step, now);
      return answer(worker, header.step, hosted, verdict, out);
    }
  }
  offers_.add({.worker = worker,
               .step = header.step,
               .block = header.block,
               .bytes = hosted.block->block().length * sizeof(float)});
}

void Shard::on_block(WorkerId worker, const FrameHeader& header, SharedBuffer payload,
                     TimePoint now, Outbox& out) {
  Hosted& hosted = *find(header.block);
  if (!payload) {
    // The worker has gone on to another step before this one's bytes were sent.
    if (header.step != kInitialStep) note_late(worker, header.step, now);
    return answer(worker, header.step, hosted, Answer::kLate, out);
  }
  if (header.step == kInitialStep) {
    const bool first = !hosted.block->started();
    if (first) hosted.block->start(std::move(payload), members_);
    answer(worker, header.step, hosted, first ? Answer::kAccepted : Answer::kDuplicate, out);
    return request_initial(out);
  }
  const Answer verdict =
      hosted.block->push(header.step, worker, header.samples, std::move(payload), members_);
  answer(worker, header.step, hosted, verdict, out);
  if (verdict == Answer::kLate) return note_late(worker, header.step, now);
  if (verdict == Answer::kDuplicate) return;
  Progress& progress = progress_of(header.step);
  ++progress.blocks[worker];
  progress.run_time[worker] = since_opening(header.step, now);
  if (verdict == Answer::kNotFinite) progress.refused.push_back({worker, header.block});
  close_if_complete(hosted, now, out);
}

void Shard::on_pull(WorkerId worker, const FrameHeader& header, Outbox& out) {
  const Waiting request{worker, header.step, header.version, (header.flags & kSnapshotFlag) != 0};
  for (auto& [id, hosted] : blocks_) {
    // One pull at a time: a newer one replaces what is left of an older one.
    std::erase_if(hosted.waiting, [&](const Waiting& waiting) { return waiting.worker == worker; });
    if (!serve(hosted, request, out)) hosted.waiting.push_back(request);
  }
}

bool Shard::serve(const Hosted& hosted, const Waiting& waiting, Outbox& out) const {
  const ShardBlock& block = *hosted.block;
  if (!open_) return false;
  ConstBuffer values;
  Version version = block.version();
  if (waiting.snapshot) {
    if (version < waiting.version) return false;
    version = waiting.version;
    values = block.snapshot(waiting.version);
    if (!values) {
      out.push_back(
          {to_worker(waiting.worker, Lane::kControl), Frame{{.type = FrameType::kGone,
                                                             .step = waiting.request,
                                                             .version = block.newest_snapshot(),
                                                             .block = block.block().id},
                                                            {}}});
      return true;
    }
  } else {
    if (!block.started() || version < waiting.version) return false;
    values = block.parameters();
  }
  const FrameHeader header{.type = FrameType::kParameters,
                           .flags = static_cast<uint16_t>(waiting.snapshot ? kSnapshotFlag : 0),
                           .step = waiting.request,
                           .version = version,
                           .block = block.block().id};
  out.push_back({to_worker(waiting.worker, Lane::kBulk),
                 Frame{header, FloatSlice{std::move(values), 0, block.block().length}}});
  return true;
}

void Shard::serve_waiting(Hosted& hosted, Outbox& out) const {
  std::erase_if(hosted.waiting,
                [&](const Waiting& waiting) { return serve(hosted, waiting, out); });
}

void Shard::close_if_complete(Hosted& hosted, TimePoint now, Outbox& out) {
  ShardBlock& block = *hosted.block;
  // With nobody left the run is over; steps that nobody took part in are not steps.
  if (!open_ || members_.count() == 0 || !block.complete(cutoff_of(block.version()))) return;
  const Step step = block.version();
  Progress& progress = progress_of(step);
  progress.samples_min = std::min(progress.samples_min, block.sum().samples());
  block.close(learning_rate(plan_->schedule, step), members_);
  serve_waiting(hosted, out);
  for (const Offer& late : offers_.withdraw_late(block.block().id, block.version())) {
    note_late(late.worker, late.step, now);
    answer(late.worker, late.step, hosted, Answer::kLate, out);
  }
  close_step_if_done(now, out);
}

void Shard::close_step_if_done(TimePoint now, Outbox& out) {
  const auto behind = [&](const auto& entry) { return entry.second.block->version() <= step_; };
  if (finished() || !open_ || std::any_of(blocks_.begin(), blocks_.end(), behind)) return;

  Progress& progress = progress_of(step_);
  StepClosed closed;
  closed.step = step_;
  closed.elapsed = since_opening(step_, now);
  closed.refused = progress.refused;
  for (WorkerId worker = 0; worker < progress.blocks.size(); ++worker) {
    if (progress.blocks[worker] == blocks_.size())
      closed.arrivals.push_back({worker, progress.run_time[worker], step_});
  }
  for (const auto& [key, run_time] : late_)
    closed.late.push_back({key.second, run_time, key.first});
  late_.clear();
  for (const WorkerId worker : members_.list()) {
    // What comes of them later is told, with a later step, when it is whole.
    if (progress.blocks[worker] == blocks_.size()) continue;
    const uint32_t seen = progress.blocks[worker] + progress.late[worker];
    if (seen < blocks_.size()) {
      straggling_[{step_, worker}] = seen;
    } else {
      late_[{step_, worker}] = progress.run_time[worker];
    }
  }
  while (straggling_.size() > kStragglersKept) straggling_.erase(straggling_.begin());
  closed.samples = blocks_.empty() ? 0 : progress.samples_min;
  progress_.erase(step_);
  ++step_;
  opened_[step_] = now;
  if (opened_.size() > kOpeningsKept) opened_.erase(opened_.begin());
  if (step_ == plan_->steps) closed.digest = digest();
  out.push_back({to_coordinator(), control_frame(std::move(closed))});
}

void Shard::note_late(WorkerId worker, Step step, TimePoint now) {
  // A gradient has arrived when its last block has; until then its time is not known.
  if (step == step_) {
    Progress& progress = progress_of(step);
    ++progress.late[worker];
    progress.run_time[worker] = since_opening(step, now);
    return;
  }
  const auto found = straggling_.find({step, worker});
  if (found == straggling_.end() || ++found->second < blocks_.size()) return;
  straggling_.erase(found);
  if (opened_.contains(step)) late_[{step, worker}] = since_opening(step, now);
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

bool Shard::finished() const { return plan_ && step_ >= plan_->steps; }

uint32_t Shard::cutoff_of(Step step) const {
  // Until the decision for a step is known, everybody alive is waited for.
  return decision_ && decision_->step == step ? decision_->cutoff : ~uint32_t{0};
}

Duration Shard::since_opening(Step step, TimePoint now) const {
  const auto found = opened_.find(step);
  return found == opened_.end() ? Duration::zero() : now - found->second;
}

Shard::Progress& Shard::progress_of(Step step) {
  Progress& progress = progress_[step];
  progress.blocks.resize(members_.size(), 0);
  progress.late.resize(members_.size(), 0);
  progress.run_time.resize(members_.size(), Duration::zero());
  return progress;
}

Shard::Hosted* Shard::find(BlockId id) {
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? nullptr : &found->second;
}

const Shard::Hosted* Shard::find(BlockId id) const {
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? nullptr : &found->second;
}

// A sum over blocks, so that it does not depend on which shard holds which.
uint64_t Shard::digest() const {
  uint64_t sum = 0;
  for (const auto& [id, hosted] : blocks_) {
    uint64_t hash = id;
    for (const float value : hosted.block->parameters()->span())
      hash = mix_bits(hash ^ std::bit_cast<uint32_t>(value));
    sum += hash;
  }
  return sum;
}

}  // namespace drover

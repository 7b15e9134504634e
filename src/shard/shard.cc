#include "shard/shard.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"
#include "shard/async_protocol.h"
#include "shard/kernels.h"
#include "shard/shard_frames.h"
#include "shard/sync_protocol.h"

namespace drover {
namespace {

std::unique_ptr<ShardProtocol> make_protocol(ShardState& state) {
  if (state.plan.asynchronous) return std::make_unique<AsyncProtocol>(state);
  return std::make_unique<SyncProtocol>(state);
}

Error breach(WorkerId worker, const std::string& what) {
  return invalid_input(
      (worker == kEvaluator ? "the evaluator" : "worker " + std::to_string(worker)) + what);
}

}  // namespace

Shard::Shard(ShardId id, size_t window_bytes, BufferPool::Make published)
    : published_(std::move(published)), state_(id, window_bytes) {}

void Shard::on_plan(const Plan& plan) {
  DROVER_CHECK(!has_plan());
  state_.plan = plan;
  state_.limits = AheadLimits::of(plan);
  state_.members = Membership(plan.workers);
  for (const Block& block : plan.blocks.blocks) {
    if (block.shard != state_.id) continue;
    state_.blocks[block.id] = std::make_unique<HostedBlock>(
        HostedBlock{.block = ShardBlock(block, plan, &pool_, &published_)});
  }
  size_t index = 0;
  for (auto& [id, hosted] : state_.blocks) hosted->index = index++;
  state_.rates = RateTable(plan.learning.schedule, plan.full_samples);
  state_.tally = StepTally(plan.workers, state_.blocks.size());
  // Scripts may have loaded a model in one worker alone.
  if (std::any_of(plan.tensors.begin(), plan.tensors.end(),
                  [](const TensorSpec& tensor) { return tensor.group > 0; }))
    startup_.ask_only_the_first();
  protocol_ = make_protocol(state_);
}

void Shard::restore(const std::vector<SavedBlock>& saved) {
  DROVER_CHECK(has_plan());
  DROVER_CHECK(!state_.open);
  DROVER_CHECK(connected_.empty());
  const Step first = state_.plan.first_step;
  state_.tally.start_at(first);
  std::map<uint64_t, const SavedBlock*> by_offset;
  for (const SavedBlock& each : saved) by_offset[each.offset] = &each;
  for (auto& [id, hosted] : state_.blocks) {
    const auto found = by_offset.find(hosted->block.block().offset);
    DROVER_CHECK(found != by_offset.end());
    hosted->block.restore(*found->second, first, state_.members);
  }
}

void Shard::on_joined(WorkerId worker, Outbox& out) {
  connected_.insert(worker);
  if (knows(worker)) protocol_->on_joined(worker);
  out.push_back({to_worker(worker, Lane::kControl), control_frame(Connected{})});
  request_initial(out);
}

void Shard::request_initial(Outbox& out) {
  const bool complete =
      std::all_of(state_.blocks.begin(), state_.blocks.end(),
                  [](const auto& entry) { return entry.second->block.started(); });
  startup_.request(complete, connected_, state_.members.size(), out);
}

void Shard::on_lost(WorkerId worker, TimePoint now, Outbox& out) {
  connected_.erase(worker);
  state_.offers.forget(worker);
  for (auto& [id, hosted] : state_.blocks) {
    std::erase_if(hosted->pulls, [&](const Pull& pull) { return pull.worker == worker; });
    if (knows(worker)) hosted->block.forget_norms(worker);
  }
  if (knows(worker)) {
    protocol_->on_lost(worker);
    state_.tally.forget(worker);
  }
  startup_.on_lost(worker);
  request_initial(out);
  if (state_.members.remove(worker)) {
    protocol_->on_members_changed(now, out);
    protocol_->settle_all(now, out);
  }
  grant_offers(out);
}

Status Shard::check_decision(const Decision& decision) const {
  if (!startup_.ready())
    return invalid_input("the coordinator sent a decision before this shard was ready");
  if (decision.cutoff == 0)
    return invalid_input("the coordinator sent a decision with a cutoff of 0");
  // The coordinator opens a step when all shards have closed the one before, or, with partial
  // pulls, some steps ahead of the slowest shard.
  const Step open = state_.tally.step();
  const Step newest = open + state_.limits.decision;
  const bool closes = !state_.blocks.empty();  // a shard without blocks closes no steps
  if (decision.step >= state_.plan.steps || (closes && decision.step > newest)) {
    return invalid_input("the coordinator sent a decision about step " +
                         std::to_string(decision.step) +
                         ", which has not begun (this shard is at step " + std::to_string(open) +
                         " of " + std::to_string(state_.plan.steps) + ")");
  }
  return done();
}

void Shard::on_decision(const Decision& decision, TimePoint now, Outbox& out) {
  state_.rates.set_noise_scale(decision.noise_scale);
  const bool changed = update_members(decision.alive);
  const bool opens = !std::exchange(state_.open, true);
  if (opens) state_.tally.open(state_.tally.step(), now);
  if (opens || changed) protocol_->on_members_changed(now, out);
  if (opens) protocol_->serve_all(now, out);
  protocol_->on_decision(decision, now, out);
  grant_offers(out);
}

// Returns whether members have changed.
bool Shard::update_members(const std::vector<WorkerId>& alive) {
  const std::set<WorkerId> named(alive.begin(), alive.end());
  bool changed = false;
  for (WorkerId worker = 0; worker < state_.members.size(); ++worker) {
    if (!named.contains(worker)) {
      changed = state_.members.remove(worker) || changed;
    } else if (connected_.contains(worker)) {
      // A worker without a connection is lost, even if the coordinator does not know that yet.
      changed = state_.members.add(worker) || changed;
    }
  }
  return changed;
}

std::optional<TimePoint> Shard::wake_at() const {
  return has_plan() ? protocol_->wake_at() : std::nullopt;
}

void Shard::on_time(TimePoint now, Outbox& out) {
  if (has_plan()) protocol_->on_time(now, out);
  grant_offers(out);
}

std::optional<CheckpointPart> Shard::take_checkpoint() {
  if (state_.checkpoints.empty()) return std::nullopt;
  std::optional<CheckpointPart> next = std::move(state_.checkpoints.front());
  state_.checkpoints.pop_front();
  return next;
}

Result<size_t> Shard::payload_floats(WorkerId worker, const FrameHeader& header) const {
  const auto admitted = admit(worker, header);
  if (!admitted) return admitted.error();
  return admitted.value().floats;
}

Result<Shard::Admitted> Shard::admit(WorkerId worker, const FrameHeader& header) const {
  if (!has_plan()) return breach(worker, " sent a frame before this shard knows its blocks");
  switch (header.type) {
    case FrameType::kPull:
    case FrameType::kDone:
      return Admitted{};
    case FrameType::kOffer:
    case FrameType::kBlock:
      return admit_push(worker, header);
    default:
      return breach(worker, " sent a frame of type " +
                                std::to_string(static_cast<int>(header.type)) +
                                ", which shards do not accept");
  }
}

Result<Shard::Admitted> Shard::admit_push(WorkerId worker, const FrameHeader& header) const {
  HostedBlock* const hosted = find(header.block);
  if (hosted == nullptr) {
    return breach(worker,
                  " pushed block " + std::to_string(header.block) + ", which is not on this shard");
  }
  if (!knows(worker)) return breach(worker, " does not take part in this run");
  const ShardBlock& block = hosted->block;
  if (header.step != kInitialStep) {
    if (!block.started())
      return breach(worker, " pushed a gradient before this shard had its parameters");
    if (header.samples == 0) return breach(worker, " pushed without samples");
    const Version version = block.version();
    if (header.step > version && header.step - version > state_.limits.push) {
      return breach(worker, " pushed for step " + std::to_string(header.step) +
                                ", which has not begun (the block is at step " +
                                std::to_string(version) + ")");
    }
  }
  const size_t floats = block.block().length;
  if ((header.flags & kPushFlags) != 0) {
    if (const Status fits = check_flags(worker, header); !fits) return fits.error();
    if ((header.flags & kNothingFlag) != 0) return Admitted{0, hosted};
  }
  if (header.length == 0) {
    // An offer in place has the position of the floats in its payload. Any other offer is empty and
    // means that a block is ready. An empty block withdraws its offer.
    const bool in_place = header.type == FrameType::kOffer && (header.flags & kInPlaceFlag) != 0;
    return Admitted{in_place ? floats : 0, hosted};
  }
  const size_t bytes = floats * bytes_of(header.number_type);
  if (header.length != bytes) {
    return breach(worker, " pushed " + std::to_string(header.length) + " bytes for block " +
                              std::to_string(header.block) + ", which has " +
                              std::to_string(bytes));
  }
  return Admitted{floats, hosted};
}

Status Shard::check_flags(WorkerId worker, const FrameHeader& header) const {
  if (header.step == kInitialStep)
    return breach(worker, " sent initial parameters as something else");
  const bool nothing = (header.flags & kNothingFlag) != 0;
  if (nothing &&
      (header.type != FrameType::kOffer || header.length > 0 ||
       (header.flags & kPushFlags) != kNothingFlag || (header.flags & kInPlaceFlag) != 0))
    return breach(worker, " sent a gradient that it says it does not have");
  const bool holds = (header.flags & kHoldFlag) != 0;
  if (holds && (header.version == 0 || header.version > state_.blocks.size()))
    return breach(worker, " holds more blocks than there are");
  return done();
}

Status Shard::on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload,
                       TimePoint now, Outbox& out) {
  const auto admitted = admit(worker, header);
  if (!admitted) return admitted.error();
  const auto [floats, hosted] = admitted.value();
  DROVER_CHECK(floats == (payload ? payload->size() : 0));
  if (hosted != nullptr) {
    const bool holds = (header.flags & kHoldFlag) != 0;
    const Push push{.worker = worker,
                    .step = header.step,
                    .samples = header.samples,
                    .hosted = *hosted,
                    .flags = static_cast<uint16_t>(header.flags & kPushFlags),
                    .holds = holds ? static_cast<uint32_t>(header.version) : 0};
    const Status taken = on_push(push, header.type, std::move(payload), now, out);
    if (!taken) return taken;
  } else if (header.type == FrameType::kPull) {
    on_pull(worker, header, now, out);
  } else if (knows(worker)) {
    protocol_->on_done(worker, header.version, now, out);
  }
  grant_offers(out);
  return done();
}

Status Shard::on_push(const Push& push, FrameType type, ConstBuffer payload, TimePoint now,
                      Outbox& out) {
  if (push.step == kInitialStep) {
    if (!startup_.asked(push.worker))
      return breach(push.worker, " sent initial parameters that were not asked for");
    if (payload && !all_finite(payload->span())) {
      return invalid_input("the initial parameters of worker " + std::to_string(push.worker) +
                           " have NaN or infinity");
    }
  }
  if (type == FrameType::kBlock &&
      !state_.offers.take(push.worker, push.step, push.hosted.block.block().id))
    return breach(push.worker, " sent a block that was not asked for");
  if (push.step == kInitialStep) return on_initial(push, type, std::move(payload), out);
  if (type == FrameType::kOffer) return protocol_->on_offer(push, std::move(payload), now, out);
  protocol_->on_block(push, std::move(payload), now, out);
  return done();
}

Status Shard::on_initial(const Push& push, FrameType type, ConstBuffer payload, Outbox& out) {
  if (!payload && type == FrameType::kOffer) return protocol_->enqueue(push, out);
  ShardBlock& block = push.hosted.block;
  Answer verdict = Answer::kLate;  // it was withdrawn
  if (payload) verdict = block.started() ? Answer::kDuplicate : Answer::kAccepted;
  if (verdict == Answer::kAccepted) block.start(payload->span());
  out.push_back(answer_frame(push.worker, push.step, block, verdict));
  if (payload) request_initial(out);
  return done();
}

void Shard::on_pull(WorkerId worker, const FrameHeader& header, TimePoint now, Outbox& out) {
  const Pull pull{worker, header.step, header.version, (header.flags & kSnapshotFlag) != 0};
  const bool trains = knows(worker) && !pull.snapshot;
  if (trains) protocol_->on_pull(worker, header.place);
  for (auto& [id, hosted] : state_.blocks) {
    // One pull of each kind at a time: a new pull replaces an older one.
    std::erase_if(hosted->pulls, [&](const Pull& older) {
      return older.worker == worker && older.snapshot == pull.snapshot;
    });
    if (!protocol_->serve(*hosted, pull, now, out)) hosted->pulls.push_back(pull);
  }
  if (trains && (header.flags & kNotDoneFlag) == 0)
    protocol_->on_done(worker, header.version, now, out);
}

void Shard::grant_offers(Outbox& out) {
  for (const Offer& offer : state_.offers.grant()) out.push_back(grant_frame(offer));
}

Status Shard::on_rate(WorkerId worker, const LearningRate& rate) {
  return state_.rates.on_rate(worker, rate, state_.tally.step());
}

void Shard::on_release(const Release& release, TimePoint now, Outbox& out) {
  protocol_->on_release(release, now, out);
  grant_offers(out);
}

Status Shard::on_length(Step steps) {
  if (steps == 0 || steps < state_.tally.step())
    return invalid_input("a run of " + std::to_string(steps) + " steps, of which " +
                         std::to_string(state_.tally.step()) + " are done");
  const bool was_due = is_checkpoint(steps, state_.plan.checkpoint_every, state_.plan.steps);
  state_.plan.steps = steps;
  for (auto& [id, hosted] : state_.blocks) hosted->block.end_at(steps);
  // The last step is done already, and nothing was saved of it.
  if (!state_.finished() || was_due || state_.plan.checkpoint_every == 0) return done();
  for (auto& [id, hosted] : state_.blocks) hosted->block.save_now();
  protocol_->gather_checkpoint();
  return done();
}

size_t Shard::pending() const {
  size_t all = state_.offers.pending() + state_.tally.pending() + state_.rates.pending();
  for (const auto& [id, hosted] : state_.blocks) all += hosted->pulls.size();
  return all + (has_plan() ? protocol_->pending() : 0);
}

HostedBlock* Shard::find(BlockId id) const {
  const auto found = state_.blocks.find(id);
  return found == state_.blocks.end() ? nullptr : found->second.get();
}

}  // namespace drover

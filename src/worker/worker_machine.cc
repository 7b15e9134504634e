#include "worker/worker_machine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"
#include "wire/limits.h"

namespace drover {

WorkerMachine::WorkerMachine(WorkerId worker, const BlockPlan& plan, SharedBuffer parameters,
                             ConstBuffer gradient, PullKind pull,
                             std::optional<PartialPull::Settings> partial)
    : worker_(worker),
      plan_(plan),
      parameters_(std::move(parameters)),
      gradient_(std::move(gradient)),
      pull_(worker, plan, pull),
      held_(plan.shards, 0),
      norms_(plan.shards, GradientNorm{.step = kInitialStep}) {
  if (!partial) return;
  partial_.emplace(worker, plan, *partial);
  received_ = std::make_shared<FloatBuffer>(parameters_->size());
  received_versions_.resize(plan.blocks.size());
  unanswered_.resize(plan.shards);
  blocks_on_.resize(plan.shards);
  for (const Block& block : plan.blocks) ++blocks_on_[block.shard];
}

void WorkerMachine::on_want_initial(ShardId shard, Outbox& out) {
  for (const BlockId id : plan_.blocks_of_shard(shard))
    offer_block(plan_.blocks[id], kInitialStep, out);
}

void WorkerMachine::begin_pull(TimePoint now, Outbox& out) {
  pulling_ = true;
  const Version wanted = began_ ? std::max<Step>(step() + 1, stop_before_) : 0;
  began_ = true;
  // If a stop order has arrived meanwhile, the version pulled ahead may be too old: pull again.
  if (std::exchange(ahead_, false) && pull_.version() >= wanted) {
    pull_.mark_done();
    for (ShardId shard = 0; shard < plan_.shards; ++shard) {
      out.push_back(
          {to_shard(shard, Lane::kControl),
           // If a shard was ahead, the pull wants a newer version than at first. The worker skips
           // the steps in between.
           Frame{{.type = FrameType::kDone, .version = pull_.version(), .worker = worker_}, {}}});
    }
    return;
  }
  if (!partial_) return pull_.begin(wanted, out);
  for (BlockId id = 0; id < received_versions_.size(); ++id) {
    if (!received_versions_[id]) continue;
    copy_received(id);
    partial_->use_late(id, *std::exchange(received_versions_[id], {}));
  }
  partial_->begin(wanted, now, out);
}

void WorkerMachine::pull_ahead(Outbox& out) {
  DROVER_CHECK(now_ && !pulling_ && !partial_);
  const Version wanted = std::max<Step>(now_->step + 1, stop_before_);
  pulling_ = ahead_ = true;
  pull_.begin(wanted, out, true);
}

void WorkerMachine::begin_step() { begin_step(gradient_); }

void WorkerMachine::begin_step(ConstBuffer gradient) {
  DROVER_CHECK(pulling_ && ready());
  pulling_ = false;
  if (partial_) freshness_ = partial_->freshness();
  before_ = now_ && now_->buffer != gradient ? std::move(now_) : std::nullopt;
  now_ = Gradient{.step = step(), .buffer = std::move(gradient)};
  ready_.assign(plan_.blocks.size(), 0);
  held_.assign(plan_.shards, 0);
  held_in_vain_ = false;
}

std::optional<TimePoint> WorkerMachine::wake_at() const {
  return partial_ && pulling_ ? partial_->wake_at() : std::nullopt;
}

void WorkerMachine::on_time(TimePoint now) {
  if (partial_ && pulling_) partial_->on_time(now);
}

void WorkerMachine::offer(uint32_t tensor, uint32_t samples, Outbox& out, uint16_t flags) {
  DROVER_CHECK(now_ && now_->step == step());
  samples_ = now_->samples = samples;
  for (const BlockId id : plan_.blocks_of_tensor(tensor)) {
    const Block& block = plan_.blocks[id];
    if (++ready_[id] < block.tensors) continue;
    const ShardId shard = block.shard;
    if (flags != 0) {
      DROVER_CHECK((flags & kNothingFlag) == 0 || block.tensors == 1);
      now_->flags.resize(plan_.blocks.size(), 0);
      now_->flags[id] = flags;
    }
    if (partial_ && unanswered_[shard]++ >= 2 * blocks_on_[shard]) {
      --unanswered_[shard];
      continue;
    }
    offer_block(block, step(), out);
  }
}

uint16_t WorkerMachine::flags_of(BlockId id, Step step) const {
  const Gradient* const gradient = step == kInitialStep ? nullptr : find_gradient(step);
  return gradient == nullptr || gradient->flags.empty() ? uint16_t{0} : gradient->flags[id];
}

void WorkerMachine::expect_norm(const std::vector<uint32_t>& tensors) {
  held_.assign(plan_.shards, 0);
  for (const uint32_t tensor : tensors) {
    for (const BlockId id : plan_.blocks_of_tensor(tensor)) ++held_[plan_.blocks[id].shard];
  }
}

std::optional<GradientNorm> WorkerMachine::norm() const {
  GradientNorm all{.step = step()};
  for (ShardId shard = 0; shard < plan_.shards; ++shard) {
    if (held_[shard] == 0) continue;
    if (norms_[shard].step != step()) return std::nullopt;
    all.squares += norms_[shard].squares;
    all.largest = std::max(all.largest, norms_[shard].largest);
  }
  return all;
}

void WorkerMachine::on_norm(ShardId shard, const GradientNorm& norm) { norms_[shard] = norm; }

void WorkerMachine::release(double scale, bool used, Outbox& out) const {
  for (ShardId shard = 0; shard < plan_.shards; ++shard) {
    if (held_[shard] == 0) continue;
    out.push_back({to_shard(shard, Lane::kControl),
                   control_frame(Release{.step = step(), .scale = scale, .used = used})});
  }
}

void WorkerMachine::offer_block(const Block& block, Step step, Outbox& out) const {
  const uint16_t flags = flags_of(block.id, step);
  if ((flags & kNothingFlag) != 0) {
    out.push_back({to_shard(block.shard, Lane::kControl), Frame{{.type = FrameType::kOffer,
                                                                 .flags = flags,
                                                                 .step = step,
                                                                 .worker = worker_,
                                                                 .block = block.id,
                                                                 .samples = samples_},
                                                                {}}});
    return;
  }
  // A small block is sent with its offer, which costs less than waiting for a grant.
  if (block.length * sizeof(float) <= kInlineBytesMax)
    return send_block(block, step, FrameType::kOffer, out);
  out.push_back(
      {to_shard(block.shard, Lane::kControl), Frame{{.type = FrameType::kOffer,
                                                     .flags = flags,
                                                     .step = step,
                                                     .version = held_on(block.shard, flags),
                                                     .worker = worker_,
                                                     .block = block.id,
                                                     .samples = samples_},
                                                    {}}});
}

void WorkerMachine::send_block(const Block& block, Step step, FrameType type, Outbox& out) const {
  const bool initial = step == kInitialStep;
  const uint16_t flags = flags_of(block.id, step);
  Frame frame{{.type = type,
               .flags = flags,
               .step = step,
               .version = held_on(block.shard, flags),
               .worker = worker_,
               .block = block.id,
               .samples = samples_},
              {}};
  // The loop has started another step, to which the buffer belongs now. An empty block withdraws
  // the offer.
  if (initial && !now_) frame.payload = FloatSlice{parameters_, block.offset, block.length};
  if (const Gradient* const gradient = initial ? nullptr : find_gradient(step)) {
    frame.header.samples = gradient->samples;
    frame.payload = FloatSlice{gradient->buffer, block.offset, block.length};
    frame.header.number_type = number_type_;
  }
  const Lane lane = type == FrameType::kOffer ? Lane::kControl : Lane::kBulk;
  out.push_back({to_shard(block.shard, lane), std::move(frame)});
}

const WorkerMachine::Gradient* WorkerMachine::find_gradient(Step step) const {
  if (now_ && now_->step == step) return &*now_;
  return before_ && before_->step == step ? &*before_ : nullptr;
}

Result<Block> WorkerMachine::destination(ShardId shard, const FrameHeader& header) const {
  if (header.block >= plan_.blocks.size() || plan_.blocks[header.block].shard != shard) {
    return invalid_input("shard " + std::to_string(shard) + " sent block " +
                         std::to_string(header.block) + ", which it does not have");
  }
  const Block& block = plan_.blocks[header.block];
  const bool in_place = (header.flags & kInPlaceFlag) != 0 && header.length == 0;
  if (!in_place && header.length != block.length * sizeof(float)) {
    return invalid_input("shard " + std::to_string(shard) + " sent " +
                         std::to_string(header.length) + " bytes for block " +
                         std::to_string(header.block));
  }
  if (header.version > kEndless) {
    return invalid_input("shard " + std::to_string(shard) + " sent version " +
                         std::to_string(header.version) + ", which no run has");
  }
  // This machine never requests snapshots.
  const bool snapshot = (header.flags & kSnapshotFlag) != 0;
  if (!snapshot && (partial_ ? !began_ : !pulling_)) {
    return invalid_input("shard " + std::to_string(shard) +
                         " sent parameters that were not requested");
  }
  return block;
}

const SharedBuffer& WorkerMachine::begin_receiving(const FrameHeader& header) {
  if (!partial_) return parameters_;
  received_versions_[header.block].reset();
  return received_;
}

void WorkerMachine::copy_received(BlockId id) {
  const Block& block = plan_.blocks[id];
  std::copy_n(received_->data() + block.offset, block.length, parameters_->data() + block.offset);
}

void WorkerMachine::on_parameters(const FrameHeader& header, TimePoint now, Outbox& out) {
  if (!partial_) return pull_.on_parameters(header, out);
  if (pulling_) {
    copy_received(header.block);
    return partial_->on_parameters(header, now, out);
  }
  received_versions_[header.block] = header.version;
  partial_->on_late(header, now);
}

Status WorkerMachine::on_frame(ShardId shard, const FrameHeader& header, TimePoint now,
                               Outbox& out) {
  switch (header.type) {
    case FrameType::kGrant:
      if (header.block >= plan_.blocks.size() || plan_.blocks[header.block].shard != shard) {
        return invalid_input("shard " + std::to_string(shard) +
                             " granted a block that it does not have");
      }
      send_block(plan_.blocks[header.block], header.step, FrameType::kBlock, out);
      return done();
    case FrameType::kAnswer:
      // Shards count the results of pushes. A late push needs no reaction, since the next pull
      // requests the newest parameters anyway; but a worker that waits for the norm of held
      // gradients must not wait for one to which it does not contribute.
      if (header.answer != Answer::kAccepted && header.answer != Answer::kDuplicate && now_ &&
          header.step == now_->step && (flags_of(header.block, header.step) & kHoldFlag) != 0)
        held_in_vain_ = true;
      if (partial_ && shard < unanswered_.size() && header.step != kInitialStep &&
          unanswered_[shard] > 0)
        --unanswered_[shard];
      return done();
    case FrameType::kParameters: {
      const auto block = destination(shard, header);
      if (!block) return block.error();
      if (expects(header)) {
        on_parameters(header, now, out);
      } else if (partial_) {
        partial_->on_old(header, pulling_, out);
      }
      return done();
    }
    case FrameType::kStop:
      on_stop(header.step);
      return done();
    default:
      return invalid_input("shard " + std::to_string(shard) +
                           " sent a frame of a type that workers do not accept");
  }
}

void WorkerMachine::on_stop(Step step) {
  // No run has such a step, and step + 1 would overflow.
  if (step > kEndless) return;
  stop_before_ = std::max(stop_before_, step + 1);
}

void WorkerMachine::on_pull_share(const PullShare& share) {
  if (partial_) partial_->on_share(share);
}

void WorkerMachine::describe_pull(TimePoint now, StepReport& report) const {
  if (!partial_) return;
  report.blocks = freshness_.blocks;
  report.fresh = freshness_.fresh;
  report.staleness_sum = freshness_.staleness_sum;
  report.staleness_max = freshness_.staleness_max;
  report.responses = partial_->responses(now);
}

}  // namespace drover

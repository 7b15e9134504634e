#include "worker/worker_machine.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "wire/limits.h"

namespace drover {

WorkerMachine::WorkerMachine(WorkerId worker, const BlockPlan& plan, ConstBuffer parameters,
                             ConstBuffer gradient, PullKind pull)
    : worker_(worker),
      plan_(plan),
      parameters_(std::move(parameters)),
      gradient_(std::move(gradient)),
      pull_(worker, plan, pull) {}

void WorkerMachine::on_want_initial(ShardId shard, Outbox& out) {
  for (const BlockId id : plan_.blocks_of_shard(shard))
    offer_block(plan_.blocks[id], kInitialStep, out);
}

void WorkerMachine::begin_pull(Outbox& out) {
  pulling_ = true;
  pull_.begin(began_ ? std::max<Step>(step() + 1, stop_before_) : 0, out);
  began_ = true;
}

void WorkerMachine::begin_step() {
  DROVER_CHECK(pulling_ && ready());
  pulling_ = false;
  gradient_step_ = step();
}

void WorkerMachine::offer(uint32_t tensor, uint32_t samples, Outbox& out) {
  DROVER_CHECK(gradient_step_ == step());
  samples_ = samples;
  for (const BlockId id : plan_.blocks_of_tensor(tensor))
    offer_block(plan_.blocks[id], step(), out);
}

void WorkerMachine::offer_block(const Block& block, Step step, Outbox& out) const {
  // A small block travels with its offer: asking first would cost more than sending.
  if (block.length * sizeof(float) <= kInlineBytesMax)
    return send_block(block, step, FrameType::kOffer, out);
  out.push_back({to_shard(block.shard, Lane::kControl), Frame{{.type = FrameType::kOffer,
                                                               .step = step,
                                                               .worker = worker_,
                                                               .block = block.id,
                                                               .samples = samples_},
                                                              {}}});
}

void WorkerMachine::send_block(const Block& block, Step step, FrameType type, Outbox& out) const {
  const bool initial = step == kInitialStep;
  Frame frame{
      {.type = type, .step = step, .worker = worker_, .block = block.id, .samples = samples_}, {}};
  // After the loop has gone on, the buffer belongs to another step: an empty block withdraws the
  // offer.
  const bool still_there = initial ? !gradient_step_ : gradient_step_ == step;
  if (still_there) {
    frame.payload = FloatSlice{initial ? parameters_ : gradient_, block.offset, block.length};
    if (!initial) frame.header.number_type = number_type_;
  }
  const Lane lane = type == FrameType::kOffer ? Lane::kControl : Lane::kBulk;
  out.push_back({to_shard(block.shard, lane), std::move(frame)});
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
  if (!pulling_) {
    return invalid_input("shard " + std::to_string(shard) +
                         " sent parameters that were not asked for");
  }
  return block;
}

Status WorkerMachine::on_frame(ShardId shard, const FrameHeader& header, Outbox& out) {
  switch (header.type) {
    case FrameType::kGrant:
      if (header.block >= plan_.blocks.size() || plan_.blocks[header.block].shard != shard) {
        return invalid_input("shard " + std::to_string(shard) +
                             " granted a block that it does not have");
      }
      send_block(plan_.blocks[header.block], header.step, FrameType::kBlock, out);
      return done();
    case FrameType::kAnswer:
      // What a push came to is counted by the shards; a late one needs no other reaction than the
      // next pull, which asks for the newest parameters anyway.
      return done();
    case FrameType::kParameters: {
      const auto block = destination(shard, header);
      if (!block) return block.error();
      if (expects(header)) pull_.on_parameters(header, out);
      return done();
    }
    case FrameType::kStop:
      on_stop(header.step);
      return done();
    default:
      return invalid_input("shard " + std::to_string(shard) +
                           " sent a frame of a type that workers do not take");
  }
}

void WorkerMachine::on_stop(Step step) { stop_before_ = std::max(stop_before_, step + 1); }

}  // namespace drover

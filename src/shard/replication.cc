#include "shard/replication.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace drover {
namespace {

ConstBuffer& floats_of(SavedBlock& block, uint32_t which) {
  switch (which) {
    case Replica::kParameters:
      return block.parameters;
    case Replica::kMomentum:
      return block.momentum;
    case Replica::kSquares:
      return block.squares;
    default:
      return block.average;
  }
}

ConstBuffer floats_of(const SavedBlock& block, uint32_t which) {
  return floats_of(const_cast<SavedBlock&>(block), which);
}

// The step, if the message is the report of its closing.
const StepClosed* closing_in(const Outgoing& message) {
  const auto* control = std::get_if<Control>(&message.frame.payload);
  return control == nullptr ? nullptr : std::get_if<StepClosed>(control);
}

}  // namespace

void ReplicaSource::on_standby(Outbox& out) {
  attached_ = true;
  sent_ = replicated_ = 0;
  for (const KeptVersion& version : kept_.versions()) send(version, out);
}

void ReplicaSource::on_standby_lost(Outbox& out) {
  attached_ = false;
  release(out);
}

void ReplicaSource::on_version(CheckpointPart part, uint64_t incarnation, Outbox& out) {
  const KeptVersion version{part.version, incarnation};
  kept_.keep(std::move(part), incarnation);
  if (attached_) send(version, out);
}

Status ReplicaSource::on_replicated(const Replicated& replicated, Outbox& out) {
  if (!attached_ || replicated.version > sent_ || replicated.version < replicated_)
    return invalid_input("the standby acknowledged version " + std::to_string(replicated.version) +
                         ", which was not sent to it");
  replicated_ = replicated.version;
  release(out);
  return done();
}

void ReplicaSource::send(const KeptVersion& version, Outbox& out) {
  sent_ = std::max(sent_, version.version);
  const CheckpointPart* const part = kept_.find(version);
  DROVER_CHECK(part != nullptr);
  const Address standby{Role::kStandby, shard_, Lane::kBulk};
  Replica replica{.kept = version, .least = kept_.versions().front().version, .blocks = {}};
  for (const SavedBlock& block : part->blocks) {
    Replica::Block each{.offset = block.offset,
                        .length = block.length,
                        .updates = block.updates,
                        .beta1_power = block.beta1_power,
                        .beta2_power = block.beta2_power,
                        .lengths = block.lengths};
    for (uint32_t which = 0; which < Replica::kFloatsMax; ++which)
      each.floats |= floats_of(block, which) ? 1u << which : 0u;
    replica.blocks.push_back(each);
  }
  out.push_back({standby, control_frame(std::move(replica))});
  for (uint32_t number = 0; number < part->blocks.size(); ++number) {
    for (uint32_t which = 0; which < Replica::kFloatsMax; ++which) {
      const ConstBuffer floats = floats_of(part->blocks[number], which);
      if (!floats) continue;
      out.push_back({standby,
                     {{.type = FrameType::kReplica,
                       .version = version.version,
                       .block = number,
                       .place = which},
                      FloatSlice{floats, 0, part->blocks[number].length}}});
    }
  }
}

void ReplicaSource::send_to_coordinator(Outgoing message, Outbox& out) {
  held_.push_back(std::move(message));
  release(out);
}

void ReplicaSource::release(Outbox& out) {
  while (!held_.empty()) {
    const StepClosed* const closed = closing_in(held_.front());
    if (attached_ && closed != nullptr && replicated_ <= closed->step) return;
    out.push_back(std::move(held_.front()));
    held_.pop_front();
  }
}

Status ReplicaIntake::on_replica(const Replica& announced, Outbox& out) {
  if (announced_) return invalid_input("a version was announced before the last one was complete");
  announced_ = announced;
  part_ = {.shard = shard_, .version = announced.kept.version, .blocks = {}};
  for (const Replica::Block& block : announced.blocks) {
    part_.blocks.push_back({.offset = block.offset,
                            .length = block.length,
                            .updates = block.updates,
                            .beta1_power = block.beta1_power,
                            .beta2_power = block.beta2_power,
                            .lengths = block.lengths});
  }
  block_ = floats_ = 0;
  skip_missing(out);
  return done();
}

Result<size_t> ReplicaIntake::payload_floats(const FrameHeader& header) const {
  if (!announced_ || header.type != FrameType::kReplica ||
      header.version != announced_->kept.version || header.block != block_ ||
      header.place != floats_)
    return invalid_input("the frame is not the next one of the announced version");
  return size_t{announced_->blocks[block_].length};
}

Status ReplicaIntake::on_floats(const FrameHeader& header, ConstBuffer floats, Outbox& out) {
  const auto size = payload_floats(header);
  if (!size) return size.error();
  if (!floats || floats->size() != size.value())
    return invalid_input("the frame does not have the announced number of floats");
  floats_of(part_.blocks[block_], floats_) = std::move(floats);
  ++floats_;
  skip_missing(out);
  return done();
}

// Moves on to the next buffer that has floats. Without one the version is complete.
void ReplicaIntake::skip_missing(Outbox& out) {
  for (; block_ < announced_->blocks.size(); ++block_, floats_ = 0) {
    while (floats_ < Replica::kFloatsMax && (announced_->blocks[block_].floats >> floats_) % 2 == 0)
      ++floats_;
    if (floats_ < Replica::kFloatsMax) return;
  }
  kept_.keep(std::move(part_), announced_->kept.incarnation);
  kept_.drop_before(announced_->least);
  out.push_back({{Role::kShard, shard_, Lane::kBulk},
                 control_frame(Replicated{.version = announced_->kept.version})});
  announced_.reset();
}

}  // namespace drover

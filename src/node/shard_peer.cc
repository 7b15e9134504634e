#include "node/shard_peer.h"

#include <utility>

#include "wire/number_type.h"

namespace drover {

void ShardPeer::attach(Lane lane, std::shared_ptr<Channel> channel) {
  if (lane == Lane::kControl) {
    memory_ = channel->take_file();
    control_ = std::move(channel);
  } else {
    bulk_ = std::move(channel);
  }
}

void ShardPeer::carry_floats_by(const std::shared_ptr<MessageCourier>& courier,
                                MessageAddress address) {
  bulk_->carry_floats_by(courier, address);
  mpi_rank_ = courier->port().rank();
}

Status ShardPeer::join(size_t gradient_floats) {
  if (published_.reserved() && memory_.open()) {
    auto view = GradientView::map(std::move(memory_), gradient_floats);
    if (!view) return view.error();
    gradients_ = std::move(view).value();
  }
  joined_ = true;
  return done();
}

void ShardPeer::close() {
  if (control_) control_->close();
  if (bulk_) bulk_->close();
}

std::span<std::byte> ShardPeer::receive(Lane lane, const FrameHeader& header, size_t floats,
                                        BufferPool& pool) {
  Incoming& payload = incoming(lane);
  payload.floats = pool.take(floats);
  if (header.number_type == NumberType::kFloat32)
    return std::as_writable_bytes(payload.floats->span());
  payload.halves.resize(floats);
  return std::as_writable_bytes(std::span(payload.halves));
}

ConstBuffer ShardPeer::take_received(Lane lane, const FrameHeader& header) {
  Incoming& payload = incoming(lane);
  if (payload.floats && header.number_type != NumberType::kFloat32)
    widen(header.number_type, payload.halves, payload.floats->span());
  return std::exchange(payload.floats, nullptr);
}

Result<ConstBuffer> ShardPeer::block_in_place(const FrameHeader& header, const Block& block) const {
  if (!gradients_) return invalid_input("a block is offered in memory that is not shared");
  return gradients_->block(header.place, header.step, block);
}

Status ShardPeer::on_taken(uint32_t place) {
  const auto found = lent_.find(place);
  if (found == lent_.end()) return invalid_input("kTaken for parameters that were not lent");
  if (--found->second.times == 0) lent_.erase(found);
  return done();
}

// Sends a peer that shares memory the place of the parameters instead of their floats. False: they
// are not in shared memory.
bool ShardPeer::lend(const Frame& frame) {
  if (!gradients_ || frame.header.type != FrameType::kParameters) return false;
  const auto& floats = std::get<FloatSlice>(frame.payload);
  const auto place = published_.place_of(floats.buffer->data() + floats.offset);
  if (!place) return false;
  Lent& lent = lent_[*place];
  lent.parameters = floats.buffer;
  ++lent.times;
  FrameHeader header = frame.header;
  header.flags |= kInPlaceFlag;
  header.place = *place;
  control_->send({header, {}});
  return true;
}

void ShardPeer::send(Lane lane, Frame frame, bool latest) {
  if (lend(frame)) return;
  // Not urgent: the peer does not wait for the answer to a gradient in place, and waking it costs.
  const FrameHeader& header = frame.header;
  if (gradients_ && header.type == FrameType::kAnswer && header.answer == Answer::kAccepted)
    return control_->send_with_next(std::move(frame));
  auto* const control = std::get_if<Control>(&frame.payload);
  auto* const connected = control != nullptr ? std::get_if<Connected>(control) : nullptr;
  if (connected != nullptr) connected->mpi_rank = mpi_rank_;
  // Parameters outside shared memory are sent on the lane that has the places of those inside: on
  // another lane an older version could arrive after a newer one.
  const auto& channel = lane == Lane::kControl || gradients_ ? control_ : bulk_;
  if (lane == Lane::kBulk && latest) return channel->send_latest(std::move(frame));
  channel->send(std::move(frame), connected != nullptr && gradients_ ? published_.file() : -1);
}

bool ShardPeer::lost_packets() {
  if (!bulk_) return false;
  const uint32_t seen = bulk_->packets_out_of_order();
  return seen != std::exchange(out_of_order_, seen);
}

}  // namespace drover

// ShardPeer: a worker's or the evaluator's two connections to a shard, the payload that is being
// read on each, and what is lent to it where both share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/float_buffer.h"
#include "core/result.h"
#include "net/message_courier.h"
#include "net/shared_memory.h"
#include "node/channel.h"
#include "node/shared_floats.h"
#include "wire/frame.h"

namespace drover {

class ShardPeer {
 public:
  // `published`: where the shard's parameters lie if they are shared.
  explicit ShardPeer(const ParameterMemory& published) : published_(published) {}

  // One of the connections, and the memory that came with it.
  void attach(Lane lane, std::shared_ptr<Channel> channel);
  bool has(Lane lane) const { return (lane == Lane::kControl ? control_ : bulk_) != nullptr; }
  // Floats of the bulk lane travel as messages. REQUIRES: has(Lane::kBulk).
  void carry_floats_by(const std::shared_ptr<MessageCourier>& courier, MessageAddress address);

  // Both connections are there: maps the peer's gradients, of so many floats, if it shares them. An
  // error means that they cannot be mapped. REQUIRES: has() both lanes.
  Status join(size_t gradient_floats);
  bool joined() const { return joined_; }
  // Tells the peer why it is not wanted.
  void refuse(const Error& why) { control_->refuse(why); }
  void close();

  // Where a payload of so many floats goes, which is about to be read on this lane.
  std::span<std::byte> receive(Lane lane, const FrameHeader& header, size_t floats,
                               BufferPool& pool);
  // What was read; null if the frame has no payload.
  ConstBuffer take_received(Lane lane, const FrameHeader& header);
  // A block that lies in the peer's memory. An error means that it breaks the protocol.
  Result<ConstBuffer> block_in_place(const FrameHeader& header, const Block& block) const;

  // The peer has copied what was published at `place`. An error: it had not been given it.
  Status on_taken(uint32_t place);
  // Parameters that the peer has been given in place and not taken yet, in places.
  size_t lent() const { return lent_.size(); }

  // `latest`: parameters of the same block that have not begun to move are forgotten.
  // REQUIRES: joined().
  void send(Lane lane, Frame frame, bool latest);

  // Whether packets were lost on the bulk lane since the last call: the kernel sees a loss as
  // packets that come before their turn.
  bool lost_packets();

 private:
  // One payload at a time is being read on each lane.
  struct Incoming {
    SharedBuffer floats;
    std::vector<uint16_t> halves;  // of which they are made, where numbers are short
  };
  struct Lent {
    ConstBuffer parameters;
    uint32_t times = 0;
  };
  Incoming& incoming(Lane lane) {
    return lane == Lane::kControl ? control_payload_ : bulk_payload_;
  }
  bool lend(const Frame& frame);

  const ParameterMemory& published_;
  std::shared_ptr<Channel> control_;
  std::shared_ptr<Channel> bulk_;
  Incoming control_payload_;
  Incoming bulk_payload_;
  uint32_t out_of_order_ = 0;         // packets, as far as is known
  std::optional<uint32_t> mpi_rank_;  // of the shard, if floats travel as messages
  bool joined_ = false;
  Descriptor memory_;
  std::optional<GradientView> gradients_;
  std::map<uint32_t, Lent> lent_;  // by place
};

}  // namespace drover

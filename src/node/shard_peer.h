// ShardPeer: the shard's side of a worker's or the evaluator's two connections: the payload that is
// being read on each, and the parameters that the peer reads in shared memory.
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
  // `published`: the shared memory of the shard's parameters, if there is any.
  explicit ShardPeer(const ParameterMemory& published) : published_(published) {}

  // Sets one of the connections, and takes the memory that came with it.
  void attach(Lane lane, std::shared_ptr<Channel> channel);
  bool has(Lane lane) const { return (lane == Lane::kControl ? control_ : bulk_) != nullptr; }
  // Floats of the bulk lane travel as messages. REQUIRES: has(Lane::kBulk).
  void carry_floats_by(const std::shared_ptr<MessageCourier>& courier, MessageAddress address);

  // Maps the peer's gradient of so many floats, if the peer shares it. An error: it cannot be
  // mapped. REQUIRES: has() both lanes.
  Status join(size_t gradient_floats);
  bool joined() const { return joined_; }
  // Sends the peer the reason and closes its control connection.
  void refuse(const Error& why) { control_->refuse(why); }
  void close();

  // Where to write the payload of so many floats that is about to be read on this lane.
  std::span<std::byte> receive(Lane lane, const FrameHeader& header, size_t floats,
                               BufferPool& pool);
  // The payload that was read; null if the frame has none.
  ConstBuffer take_received(Lane lane, const FrameHeader& header);
  // A block in the peer's shared memory. An error means that the peer breaks the protocol.
  Result<ConstBuffer> block_in_place(const FrameHeader& header, const Block& block) const;

  // The peer has copied the parameters at `place`. An error: they were not lent to it.
  Status on_taken(uint32_t place);
  // The number of places whose parameters the peer may still be reading.
  size_t lent() const { return lent_.size(); }

  // `latest`: replaces queued parameters of the same block; see Channel::send_latest().
  // REQUIRES: joined().
  void send(Lane lane, Frame frame, bool latest);

  // Whether packets were lost on the bulk lane since the last call. The kernel counts packets that
  // arrive out of order, which a loss causes.
  bool lost_packets();

 private:
  // One payload at a time is being read on each lane.
  struct Incoming {
    SharedBuffer floats;
    std::vector<uint16_t> halves;  // the payload as received, if it has 16-bit numbers
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
  uint32_t out_of_order_ = 0;         // packets, at the last lost_packets()
  std::optional<uint32_t> mpi_rank_;  // of the shard, if floats travel as MPI messages
  bool joined_ = false;
  Descriptor memory_;
  std::optional<GradientView> gradients_;
  std::map<uint32_t, Lent> lent_;  // by place
};

}  // namespace drover

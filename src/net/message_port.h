// MessagePort: sends and receives whole messages between numbered processes, without copying. It is
// the part of an MPI library that Drover uses.
//
// No function waits and none calls back: the caller polls its operations with has_ended(). One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/result.h"

namespace drover {

// The other end of a connection: a process, and one of the lanes to it.
struct MessageAddress {
  uint32_t rank = 0;
  uint32_t lane = 0;
  bool operator==(const MessageAddress&) const = default;
};

class MessagePort {
 public:
  // Every MPI library has at least this many tags.
  static constexpr uint32_t kLaneMax = 32'767;

  using Ticket = uint64_t;  // identifies a pending operation
  using Memory = std::shared_ptr<const void>;

  virtual ~MessagePort() = default;

  // This process's number, and the number of processes.
  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;
  // A lane that this process has not used before, so that messages of an earlier connection to the
  // same peer are not received on a new one.
  virtual uint32_t new_lane() = 0;

  // Messages of a lane are received in the order in which they were sent.
  // REQUIRES: the memory stays valid until the operation has ended; reaches(address).
  virtual Result<Ticket> begin_send(std::span<const std::byte> message, MessageAddress to) = 0;
  virtual Result<Ticket> begin_receive(std::span<std::byte> into, MessageAddress from) = 0;

  // Whether the operation has ended. An error if it has failed, or if the message had another
  // length. After true or an error the ticket is invalid.
  virtual Result<bool> has_ended(Ticket ticket) = 0;

  // Cancels a receive. ENSURES: nothing is written to its memory afterwards. Waits for a message
  // that has begun to arrive, since MPI cannot cancel it; if it does not complete, the process
  // exits.
  virtual void cancel_receive(Ticket receive) = 0;
  // The caller is no longer interested in a send. `memory` is kept as long as it may be read.
  virtual void release_send(Ticket send, Memory memory) = 0;

  // Ends messaging: waits until all processes have called this, which they do when a run is
  // completed. A process that fails does not call it. May be called from any thread, and
  // repeatedly.
  virtual void finish() = 0;

  bool reaches(MessageAddress address) const {
    return address.rank < ranks() && address.rank != rank() && address.lane <= kLaneMax;
  }
};

}  // namespace drover

// MessagePort: whole messages between processes that know each other by number, straight out of
// memory and into it. It is what we need of an MPI library, and no more.
//
// Nothing here waits and nothing calls back: who has begun something asks whether it has ended. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/result.h"

namespace drover {

// The other end: a process, and which of the conversations with it.
struct MessageAddress {
  uint32_t rank = 0;
  uint32_t lane = 0;
  bool operator==(const MessageAddress&) const = default;
};

class MessagePort {
 public:
  // Every MPI library has so many tags.
  static constexpr uint32_t kLaneMax = 32'767;

  using Ticket = uint64_t;  // of something that is under way
  using Memory = std::shared_ptr<const void>;

  virtual ~MessagePort() = default;

  // This process's number, and of how many.
  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;
  // One that this process has not used before: what is left of an earlier conversation with the
  // same peer is not taken for a part of the next.
  virtual uint32_t new_lane() = 0;

  // Messages of a lane are received in the order in which they were sent.
  // REQUIRES: the memory stays valid until the ticket's end; the address is one that reaches().
  virtual Result<Ticket> begin_send(std::span<const std::byte> message, MessageAddress to) = 0;
  virtual Result<Ticket> begin_receive(std::span<std::byte> into, MessageAddress from) = 0;

  // Whether it has. An error if it has failed, or if the message had another length; then, and
  // after true, the ticket is used up.
  virtual Result<bool> has_ended(Ticket ticket) = 0;

  // Ends a receive: afterwards nothing is written to its memory. A message that has begun to arrive
  // is waited for, since no MPI library can stop it; if it never comes, the process ends.
  virtual void cancel_receive(Ticket receive) = 0;
  // Ends a send as far as the caller is concerned. Its memory is kept as long as it may be read.
  virtual void release_send(Ticket send, Memory memory) = 0;

  // No more messages: waits until all processes have come to this, as they do when a run is
  // completed; who fails goes without. May be called from any thread, and again.
  virtual void finish() = 0;

  bool reaches(MessageAddress address) const {
    return address.rank < ranks() && address.rank != rank() && address.lane <= kLaneMax;
  }
};

}  // namespace drover

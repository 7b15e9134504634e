// MessageCourier: sends and receives messages of a MessagePort on an event loop.
//
// A port has no descriptor to wait for, so pending operations are polled: first without pause, then
// with growing pauses. Without pending operations nothing is polled, so a receiver must be notified
// of a message in another way (node/channel.h: by a header on a socket).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "net/message_port.h"

namespace drover {

// The pause before the next poll after `in_vain` polls without a result.
Duration pause_before_next_look(uint32_t in_vain);

// Belongs to one event loop, like Connection.
class MessageCourier : public std::enable_shared_from_this<MessageCourier> {
 public:
  using Done = std::function<void(const Status&)>;

  // `port` must outlive this.
  MessageCourier(boost::asio::any_io_executor executor, MessagePort& port);
  ~MessageCourier() { close(); }
  MessageCourier(const MessageCourier&) = delete;
  MessageCourier& operator=(const MessageCourier&) = delete;

  MessagePort& port() { return port_; }

  // Receives a message of exactly the size of `into`. Returns true if it is received on return.
  // Otherwise calls `done` later, when it is received or with an error.
  // REQUIRES: `into` stays valid until `done` or forget().
  bool receive(std::span<std::byte> into, MessageAddress from, Done done);
  // Sends a message. Returns and calls `done` like receive(). `memory` keeps the message alive.
  bool send(std::span<const std::byte> message, MessageAddress to, MessagePort::Memory memory,
            Done done);

  // Cancels all operations with this peer, without calling their `done`.
  void forget(MessageAddress peer);
  // Cancels all operations, without calling their `done`.
  void close();

 private:
  struct UnderWay {
    MessagePort::Ticket ticket = 0;
    MessageAddress peer;
    bool receives = false;
    MessagePort::Memory memory;
    Done done;
  };

  bool begin(Result<MessagePort::Ticket> ticket, UnderWay begun);
  void look();
  void plan_look();
  void end(UnderWay& each);

  MessagePort& port_;
  boost::asio::steady_timer next_look_;
  std::vector<UnderWay> under_way_;
  uint32_t in_vain_ = 0;  // polls in a row without a result
  bool planned_ = false;
};

}  // namespace drover

// MessageCourier: messages of a MessagePort on an event loop.
//
// A port has no descriptor that could be waited for, so what is under way is looked at again and
// again: a few times at once, then with pauses. When nothing is under way nothing is looked at; who
// expects a message must have heard of it elsewhere (node/channel.h: from its header).
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

// How long to wait before looking again, after having looked so often in vain.
Duration pause_before_next_look(uint32_t in_vain);

// Lives on one event loop, as Connection does.
class MessageCourier : public std::enable_shared_from_this<MessageCourier> {
 public:
  using Done = std::function<void(const Status&)>;

  // `port` must outlive this.
  MessageCourier(boost::asio::any_io_executor executor, MessagePort& port);
  ~MessageCourier() { close(); }
  MessageCourier(const MessageCourier&) = delete;
  MessageCourier& operator=(const MessageCourier&) = delete;

  MessagePort& port() { return port_; }

  // Fills `into` with a message of just that size. Returns true if it has done so; else it calls
  // `done` when it has, or when that is no longer possible.
  // REQUIRES: `into` stays valid until `done`, or forget().
  bool receive(std::span<std::byte> into, MessageAddress from, Done done);
  // Sends a message. Returns and calls as receive() does. `memory` keeps what is sent.
  bool send(std::span<const std::byte> message, MessageAddress to, MessagePort::Memory memory,
            Done done);

  // Ends everything between us and this peer; nobody is called.
  void forget(MessageAddress peer);
  // The same with everybody.
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
  uint32_t in_vain_ = 0;  // looks in a row
  bool planned_ = false;
};

}  // namespace drover

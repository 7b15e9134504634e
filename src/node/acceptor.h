// Acceptor: accepts connections and admits peers that prove that they are members of this run.
//
// A handshake has five messages. Both ends send a Challenge with a nonce. The connecting peer sends
// a Challenge with its proof, the acceptor answers with its own proof, and the peer sends Hello. A
// connection that fails the handshake is refused with the reason: another protocol, another
// version, or a wrong token. A connection that does not finish in time is closed. An address that
// fails repeatedly is blocked for a while (ConnectionLimiter). None of that delays or ends the run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "net/socket.h"
#include "node/channel.h"
#include "node/connection_limiter.h"
#include "node/credentials.h"
#include "node/timer.h"
#include "wire/control.h"

namespace drover {

class Acceptor {
 public:
  // For the whole handshake: hundreds of workers that start at once on few cores take seconds.
  static constexpr Duration kHandshakeTimeout = std::chrono::seconds(15);
  // Concurrent handshakes. Beyond that the oldest is closed: members take milliseconds.
  static constexpr size_t kPendingMax = 4096;

  // Called for every Hello of an authenticated peer; an error is the reason to refuse it. On
  // success the new owner has called replace_callbacks().
  using Admit = std::function<Status(const std::shared_ptr<Channel>&, const Hello&)>;

  Acceptor(boost::asio::io_context& loop, std::unique_ptr<Listener> listener, RunKey key,
           Admit admit, size_t pending_max = kPendingMax);
  ~Acceptor();  // closes connections that have not been admitted

  std::string address() const { return listener_->address(); }
  // Connections whose handshake is not complete.
  size_t pending() const { return pending_.size(); }

 private:
  struct PendingPeer {
    std::shared_ptr<Channel> channel;
    Location from;
    TimePoint deadline{};
    Nonces nonces;
    bool authenticated = false;
  };

  void begin_handshake(Socket socket);
  Status on_control(uint64_t id, const Control& message);
  Status check_proof(PendingPeer& peer, const Challenge& challenge);
  void on_failed(uint64_t id, const Error& why);
  void close_expired();
  void set_timer();

  const RunKey key_;
  const Admit admit_;
  const size_t pending_max_;
  std::map<uint64_t, PendingPeer> pending_;  // oldest first
  uint64_t next_ = 0;
  ConnectionLimiter limiter_;
  Timer timer_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace drover

// Sockets: listening, accepting and connecting, with tuned options.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "net/endpoint.h"

namespace drover {

using Socket = SocketProtocol::socket;

// The error text of a connection that the other end closed.
inline constexpr const char* kConnectionClosed = "the connection was closed";

// A listening socket. On Unix sockets it accepts only processes of the same user.
class Listener {
 public:
  // `address` as in net/endpoint.h; port 0 selects any free port. The error says if the address is
  // in use.
  static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& loop,
                                                const std::string& address);

  // Takes over a listening socket that the parent process opened before the fork.
  static std::unique_ptr<Listener> adopt(boost::asio::io_context& loop, int fd);

  // The address with the bound port.
  std::string address() const;

  // Calls `accepted` for every connection until the listener is destroyed.
  void start(std::function<void(Socket)> accepted);

  // A copy of the listening socket for a child process to adopt. It stays open after the listener
  // is destroyed.
  Result<int> duplicate();

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<SocketProtocol>;
  explicit Listener(boost::asio::io_context& loop) : acceptor_(loop), pause_(loop) {}
  void accept_next();

  Acceptor acceptor_;
  boost::asio::steady_timer pause_;  // after an error, such as too many open files
  std::function<void(Socket)> accepted_;
};

// Connects and blocks until that is done, for callers that have no other work. If the host does not
// answer, this takes seconds. `peer` names the peer in the error message.
Result<Socket> connect_socket(boost::asio::io_context& loop, const std::string& address,
                              const std::string& peer);

// Connects without blocking the event loop. To be used from the loop's thread.
class Dialing {
 public:
  // Calls `connected` once, from the loop.
  Dialing(boost::asio::io_context& loop, const std::string& address, std::string peer,
          std::function<void(Result<Socket>)> connected);
  ~Dialing();  // cancels: `connected` is not called any more
  Dialing(const Dialing&) = delete;
  Dialing& operator=(const Dialing&) = delete;

 private:
  struct Call;
  std::shared_ptr<Call> call_;
};

// Sets options for bulk transfer: no Nagle algorithm, an explicit congestion control algorithm, and
// keepalive that detects an unreachable host.
void tune_socket(Socket& socket);

}  // namespace drover

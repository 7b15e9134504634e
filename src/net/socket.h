// Opening sockets: listening, accepting, connecting, with the options measured to matter.
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

// What is said of a connection that the other end has closed.
inline constexpr const char* kConnectionClosed = "the connection was closed";

// A listening socket. Accepts only processes of the same user on Unix sockets.
class Listener {
 public:
  // `address` as in net/endpoint.h; port 0 takes any free one. A port in use is an error that says
  // so.
  static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& loop,
                                                const std::string& address);

  // Takes over a listening socket that another process opened before this one was forked.
  static std::unique_ptr<Listener> adopt(boost::asio::io_context& loop, int fd);

  // The address with the port really bound.
  std::string address() const;

  // Calls `accepted` for every connection until the listener is destroyed.
  void start(std::function<void(Socket)> accepted);

  // A copy of the listening socket for a child process to adopt; stays open when the listener is
  // gone.
  Result<int> duplicate();

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<SocketProtocol>;
  explicit Listener(boost::asio::io_context& loop) : acceptor_(loop), pause_(loop) {}
  void accept_next();

  Acceptor acceptor_;
  boost::asio::steady_timer pause_;  // after an error, such as too many open files
  std::function<void(Socket)> accepted_;
};

// Connects, waiting until done: for those who have nobody else to listen to. A host that does not
// answer takes seconds. `whom` names the peer for the error message.
Result<Socket> connect_socket(boost::asio::io_context& loop, const std::string& address,
                              const std::string& whom);

// A connection that is being made while the loop goes on with other things. Used from its loop.
class Dialing {
 public:
  // `connected` is called from the loop, once.
  Dialing(boost::asio::io_context& loop, const std::string& address, std::string whom,
          std::function<void(Result<Socket>)> connected);
  ~Dialing();  // gives it up: `connected` is not called any more
  Dialing(const Dialing&) = delete;
  Dialing& operator=(const Dialing&) = delete;

 private:
  struct Call;
  std::shared_ptr<Call> call_;
};

// Sets what bulk transfer wants: no Nagle, an explicit congestion algorithm, keepalive that notices
// a vanished host.
void tune_socket(Socket& socket);

}  // namespace drover

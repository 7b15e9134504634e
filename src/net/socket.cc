#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace drover {
namespace {

constexpr int kUnixSendBufferBytes = 1 << 20;

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof(value));
}

bool same_user(Socket& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

bool is_unix(const SocketProtocol::endpoint& address) {
  return address.protocol().family() == AF_UNIX;
}

Error not_connected(const std::string& peer, const std::string& address, const std::string& why) {
  return {ErrorKind::kDisconnected, "cannot connect to " + peer + " at " + address + ": " + why};
}

Error not_connected(const std::string& peer, const std::string& address,
                    const boost::system::error_code& why) {
  return not_connected(peer, address, why.message() + "; is it running?");
}

// Options are set before connecting, since they also limit the time that a host may not answer.
boost::system::error_code open_for(const Endpoint& endpoint, Socket& socket) {
  boost::system::error_code error;
  socket.open(endpoint.address.protocol(), error);
  if (!error) tune_socket(socket);
  return error;
}

}  // namespace

void tune_socket(Socket& socket) {
  const int fd = socket.native_handle();
  boost::system::error_code error;
  if (is_unix(socket.local_endpoint(error))) {
    set_option(fd, SOL_SOCKET, SO_SNDBUF, kUnixSendBufferBytes);
    return;
  }
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
  // BBR, which may be the system's default, halves the throughput of loopback and short paths;
  // cubic needs a privilege on some machines.
  for (const char* algorithm : {"cubic", "reno"}) {
    if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm,
                     static_cast<socklen_t>(std::strlen(algorithm))) == 0) {
      break;
    }
  }
}

Result<std::unique_ptr<Listener>> Listener::open(boost::asio::io_context& loop,
                                                 const std::string& address) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return endpoint.error();
  std::unique_ptr<Listener> listener(new Listener(loop));
  boost::system::error_code error;
  listener->acceptor_.open(endpoint.value().address.protocol(), error);
  if (!error && !endpoint.value().local) {
    listener->acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
  }
  if (!error) listener->acceptor_.bind(endpoint.value().address, error);
  if (!error) listener->acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error == boost::asio::error::address_in_use) {
    return system_error(
        "cannot listen on " + address + ": it is in use by another process. " +
            (endpoint.value().local ? "Try again." : "Choose another port (--port, or --listen)."),
        EADDRINUSE);
  }
  if (error)
    return system_error("cannot listen on " + address + ": " + error.message(), error.value());
  return listener;
}

std::unique_ptr<Listener> Listener::adopt(boost::asio::io_context& loop, int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  DROVER_CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::unique_ptr<Listener> listener(new Listener(loop));
  listener->acceptor_.assign(SocketProtocol(address.ss_family, 0), fd);
  return listener;
}

Result<int> Listener::duplicate() {
  const int fd = ::dup(acceptor_.native_handle());
  if (fd < 0)
    return system_error(std::string("cannot duplicate a listening socket: ") +
                        std::strerror(errno));
  return fd;
}

std::string Listener::address() const { return to_text(acceptor_.local_endpoint()); }

void Listener::start(std::function<void(Socket)> accepted) {
  accepted_ = std::move(accepted);
  accept_next();
}

void Listener::accept_next() {
  acceptor_.async_accept([this](boost::system::error_code error, Socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) {
      pause_.expires_after(std::chrono::milliseconds(100));
      pause_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) accept_next();
      });
      return;
    }
    if (!error) {
      boost::system::error_code ignored;
      if (!is_unix(acceptor_.local_endpoint(ignored)) || same_user(socket)) {
        tune_socket(socket);
        accepted_(std::move(socket));
      }
    }
    accept_next();
  });
}

Result<Socket> connect_socket(boost::asio::io_context& loop, const std::string& address,
                              const std::string& peer) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return endpoint.error();
  Socket socket(loop);
  boost::system::error_code error = open_for(endpoint.value(), socket);
  if (!error) socket.connect(endpoint.value().address, error);
  if (error) return not_connected(peer, address, error);
  // A process of another user may have taken the name first.
  if (endpoint.value().local && !same_user(socket))
    return not_connected(peer, address, "it is a process of another user");
  return socket;
}

struct Dialing::Call {
  Socket socket;
  std::function<void(Result<Socket>)> connected;  // empty: cancelled

  void end(Result<Socket> result) {
    if (const auto call = std::exchange(connected, nullptr)) call(std::move(result));
  }
};

Dialing::Dialing(boost::asio::io_context& loop, const std::string& address, std::string peer,
                 std::function<void(Result<Socket>)> connected)
    : call_(std::make_shared<Call>(Call{Socket(loop), std::move(connected)})) {
  const auto endpoint = parse_endpoint(address);
  // Unix sockets connect synchronously: it is quick, and a full queue cannot be waited for
  // otherwise.
  if (!endpoint || endpoint.value().local) {
    boost::asio::post(loop, [call = call_, result = connect_socket(loop, address, peer)]() mutable {
      call->end(std::move(result));
    });
    return;
  }
  if (const auto error = open_for(endpoint.value(), call_->socket)) {
    boost::asio::post(
        loop, [call = call_, why = not_connected(peer, address, error)] { call->end(why); });
    return;
  }
  call_->socket.async_connect(
      endpoint.value().address,
      [call = call_, peer = std::move(peer), address](const boost::system::error_code& error) {
        if (error) return call->end(not_connected(peer, address, error));
        call->end(std::move(call->socket));
      });
}

Dialing::~Dialing() {
  call_->connected = nullptr;
  boost::system::error_code ignored;
  call_->socket.close(ignored);
}

}  // namespace drover

// Connection: reads and writes whole buffers on a socket, one thing after another, without knowing
// what they mean.
//
// Lives on one event loop; every call and every callback happens on that loop's thread.
#pragma once

#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "net/socket.h"

namespace drover {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Done = std::function<void(const Status&)>;

  explicit Connection(Socket socket) : socket_(std::move(socket)) {}

  // Fills `into` completely, then calls `done`; an end of the stream before that is an error.
  // REQUIRES: no other read is under way; `into` stays valid until `done`.
  void read(std::span<std::byte> into, Done done);

  // Writes all of `parts` with as few system calls as the kernel allows, then calls `done`.
  // REQUIRES: no other write is under way; the memory stays valid until `done`.
  void write(const std::vector<boost::asio::const_buffer>& parts, Done done);

  // Pending calls end with an error.
  void close();
  bool is_open() const { return socket_.is_open(); }

 private:
  Socket socket_;
};

}  // namespace drover

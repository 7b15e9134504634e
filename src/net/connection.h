// Connection: reads and writes whole buffers on a socket, one thing after another, without knowing
// what they mean.
//
// Lives on one event loop; every call and every callback happens on that loop's thread. What can be
// done at once is done at once, so that a stream of small things costs few system calls.
#pragma once

#include <sys/uio.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "net/descriptor.h"
#include "net/socket.h"
#include "net/tls.h"

namespace drover {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Done = std::function<void(const Status&)>;

  // With `tls`, a session on this socket, everything is encrypted.
  explicit Connection(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  // Fills `into` completely. Returns true if it has done so; else it calls `done` when it has, or
  // when that is no longer possible: an end of the stream before that is an error.
  // REQUIRES: no other read is under way; `into` stays valid until `done`.
  bool read(std::span<std::byte> into, Done done);

  // Writes all of `parts` with as few system calls as the kernel allows. Returns and calls as
  // read() does. A copy of `file`, if there is one, goes to the peer with the first byte; only Unix
  // sockets carry one.
  // REQUIRES: no other write is under way; the memory stays valid until `done`.
  bool write(const std::vector<boost::asio::const_buffer>& parts, Done done, int file = -1);

  // The file that came with what was last read, if one did.
  Descriptor take_file() { return std::move(file_); }

  // Pending calls end with an error.
  void close();
  // Packets that came out of order so far, most often because others before them were lost; 0 where
  // that cannot be known.
  uint32_t packets_out_of_order();
  // Bytes so far.
  uint64_t received() const { return received_; }
  bool is_open() const { return socket_.is_open(); }
  // Both ends are on this machine, and speak over a Unix socket.
  bool is_local() const;
  Socket::executor_type executor() { return socket_.get_executor(); }

 private:
  enum class Progress : uint8_t { kDone, kWaits, kFailed };

  Progress receive();
  Progress send();
  Progress receive_encrypted();
  Progress send_encrypted();
  std::span<const std::byte> next_record();
  void mark_written(size_t bytes);
  Progress waits_or_failed(TlsSession::Progress progress, Socket::wait_type& waits_for);
  void keep_file(const msghdr& message);
  void wait_to_read(Done done);
  void wait_to_write(Done done);
  void fail(Done done);

  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
  // A handshake may have to write in order to read, or the reverse.
  Socket::wait_type read_waits_for_ = Socket::wait_read;
  Socket::wait_type write_waits_for_ = Socket::wait_write;
  bool tells_order_ = true;  // of packets
  std::string trouble_;      // why kFailed
  uint64_t received_ = 0;

  // What was read beyond what was asked for: most often whole small frames.
  std::array<std::byte, 8192> ahead_;
  size_t ahead_begin_ = 0;
  size_t ahead_end_ = 0;
  std::span<std::byte> into_;  // what is still to be filled
  Descriptor file_;

  std::vector<iovec> out_;
  size_t out_begin_ = 0;  // parts before this are written
  int out_file_ = -1;
  std::vector<std::byte> record_;  // small parts that are encrypted together
};

}  // namespace drover

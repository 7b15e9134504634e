// Connection: reads and writes whole buffers on a socket, in order.
//
// It belongs to one event loop: every call and every callback happens on that loop's thread.
// Operations that need not wait complete within the call, so that many small ones cost few system
// calls.
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

  // With `tls`, a session on this socket, the connection is encrypted.
  explicit Connection(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  // Fills `into` completely. Returns true if it is filled on return. Otherwise calls `done` later,
  // when it is filled or with an error; an earlier end of the stream is an error.
  // REQUIRES: no other read is pending; `into` stays valid until `done`.
  bool read(std::span<std::byte> into, Done done);

  // Writes all of `parts` with as few system calls as possible. Returns and calls `done` like
  // read(). If `file` is not -1, a copy of this descriptor is sent with the first byte; only Unix
  // sockets can send one. REQUIRES: no other write is pending; the memory stays valid until `done`.
  bool write(const std::vector<boost::asio::const_buffer>& parts, Done done, int file = -1);

  // The descriptor that was received with the last bytes read, if any.
  Descriptor take_file() { return std::move(file_); }

  // Pending reads and writes end with an error.
  void close();
  // Packets received out of order so far, most often because earlier ones were lost; 0 if the
  // kernel does not report it.
  uint32_t packets_out_of_order();
  // Bytes received so far.
  uint64_t received() const { return received_; }
  bool is_open() const { return socket_.is_open(); }
  // Whether this is a Unix socket, so that both ends are on this machine.
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
  bool reports_order_ = true;  // whether the kernel counts packets out of order
  std::string trouble_;        // the reason of kFailed
  uint64_t received_ = 0;

  // Bytes read beyond the end of the requested buffer: most often whole small frames.
  std::array<std::byte, 8192> ahead_;
  size_t ahead_begin_ = 0;
  size_t ahead_end_ = 0;
  std::span<std::byte> into_;  // the part of the buffer that is not filled yet
  Descriptor file_;

  std::vector<iovec> out_;
  size_t out_begin_ = 0;  // parts before this are written
  int out_file_ = -1;
  std::vector<std::byte> record_;  // small parts that are encrypted together
};

}  // namespace drover

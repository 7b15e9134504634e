#include "net/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/tcp_statistics.h"

namespace drover {
namespace {

// Maximum number of parts in one system call; the kernel's limit is 1,024.
constexpr size_t kPartsMax = 256;
// Maximum size of a TLS record.
constexpr size_t kRecordBytes = 16 << 10;

Status lost(const std::string& why) { return Error{ErrorKind::kDisconnected, why}; }

}  // namespace

bool Connection::is_local() const {
  boost::system::error_code gone;
  return socket_.local_endpoint(gone).protocol().family() == AF_UNIX;
}

bool Connection::read(std::span<std::byte> into, Done done) {
  const size_t ready = std::min(into.size(), ahead_end_ - ahead_begin_);
  std::memcpy(into.data(), ahead_.data() + ahead_begin_, ready);
  ahead_begin_ += ready;
  into_ = into.subspan(ready);
  if (into_.empty()) return true;
  const Progress progress = receive();
  if (progress == Progress::kDone) return true;
  progress == Progress::kWaits ? wait_to_read(std::move(done)) : fail(std::move(done));
  return false;
}

// One system call fills the requested buffer and reads available bytes beyond it.
Connection::Progress Connection::receive() {
  if (tls_) return receive_encrypted();
  while (!into_.empty()) {
    ahead_begin_ = ahead_end_ = 0;
    std::array<iovec, 2> parts{iovec{into_.data(), into_.size()},
                               iovec{ahead_.data(), ahead_.size()}};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> extra;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    message.msg_control = extra.data();
    message.msg_controllen = extra.size();
    const ssize_t count =
        ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Progress::kWaits;
      trouble_ = std::strerror(errno);
      return Progress::kFailed;
    }
    if (count == 0) {
      trouble_ = kConnectionClosed;
      return Progress::kFailed;
    }
    keep_file(message);
    const auto bytes = static_cast<size_t>(count);
    received_ += bytes;
    const size_t wanted = std::min(bytes, into_.size());
    into_ = into_.subspan(wanted);
    ahead_end_ = bytes - wanted;
  }
  return Progress::kDone;
}

void Connection::keep_file(const msghdr& message) {
  for (const cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(each))) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(each), sizeof(fd));
    file_ = Descriptor(fd);
  }
}

// The callback of the wait owns `done`, and this connection does not: `done` may own the
// connection, and the cycle would never be freed.
void Connection::wait_to_read(Done done) {
  socket_.async_wait(read_waits_for_, [self = shared_from_this(), done = std::move(done)](
                                          const boost::system::error_code& error) mutable {
    if (error) return done(lost(error.message()));
    const Progress progress = self->receive();
    if (progress == Progress::kWaits) return self->wait_to_read(std::move(done));
    done(progress == Progress::kDone ? drover::done() : lost(self->trouble_));
  });
}

void Connection::fail(Done done) {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this(), done = std::move(done)] {
    done(lost(self->trouble_));
  });
}

bool Connection::write(const std::vector<boost::asio::const_buffer>& parts, Done done, int file) {
  out_.clear();
  out_begin_ = 0;
  out_file_ = file;
  for (const auto& part : parts) {
    if (part.size() > 0) out_.push_back({const_cast<void*>(part.data()), part.size()});
  }
  const Progress progress = send();
  if (progress == Progress::kDone) return true;
  progress == Progress::kWaits ? wait_to_write(std::move(done)) : fail(std::move(done));
  return false;
}

Connection::Progress Connection::send() {
  if (tls_) return send_encrypted();
  while (out_begin_ < out_.size()) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> extra{};
    msghdr message{};
    message.msg_iov = out_.data() + out_begin_;
    message.msg_iovlen = std::min(out_.size() - out_begin_, kPartsMax);
    if (out_file_ >= 0) {
      message.msg_control = extra.data();
      message.msg_controllen = extra.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &out_file_, sizeof(int));
    }
    const ssize_t count = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Progress::kWaits;
      trouble_ = std::strerror(errno);
      return Progress::kFailed;
    }
    out_file_ = -1;
    mark_written(static_cast<size_t>(count));
  }
  return Progress::kDone;
}

void Connection::mark_written(size_t bytes) {
  while (out_begin_ < out_.size() && bytes >= out_[out_begin_].iov_len)
    bytes -= out_[out_begin_++].iov_len;
  if (bytes == 0) return;
  iovec& part = out_[out_begin_];
  part.iov_base = static_cast<std::byte*>(part.iov_base) + bytes;
  part.iov_len -= bytes;
}

// --- encrypted

Connection::Progress Connection::receive_encrypted() {
  while (!into_.empty()) {
    const auto progress = tls_->read(into_);
    if (progress != TlsSession::Progress::kSome) return waits_or_failed(progress, read_waits_for_);
    received_ += tls_->bytes();
    into_ = into_.subspan(tls_->bytes());
  }
  return Progress::kDone;
}

Connection::Progress Connection::send_encrypted() {
  while (out_begin_ < out_.size()) {
    const auto progress = tls_->write(next_record());
    if (progress != TlsSession::Progress::kSome) return waits_or_failed(progress, write_waits_for_);
    mark_written(tls_->bytes());
  }
  const auto progress = tls_->flush();
  if (progress != TlsSession::Progress::kSome) return waits_or_failed(progress, write_waits_for_);
  return Progress::kDone;
}

// Small parts are copied into one record, since every record has a cost; large ones are written in
// place. After a wait, the write is repeated with the same bytes, as OpenSSL requires.
std::span<const std::byte> Connection::next_record() {
  const iovec& first = out_[out_begin_];
  if (first.iov_len >= kRecordBytes || out_begin_ + 1 == out_.size())
    return {static_cast<const std::byte*>(first.iov_base), first.iov_len};
  record_.clear();
  for (size_t i = out_begin_; i < out_.size() && record_.size() < kRecordBytes; ++i) {
    const auto* const bytes = static_cast<const std::byte*>(out_[i].iov_base);
    record_.insert(record_.end(), bytes,
                   bytes + std::min(out_[i].iov_len, kRecordBytes - record_.size()));
  }
  return record_;
}

Connection::Progress Connection::waits_or_failed(TlsSession::Progress progress,
                                                 Socket::wait_type& waits_for) {
  if (progress == TlsSession::Progress::kFailed) {
    trouble_ = tls_->trouble();
    return Progress::kFailed;
  }
  waits_for = progress == TlsSession::Progress::kWaitsRead ? Socket::wait_read : Socket::wait_write;
  return Progress::kWaits;
}

void Connection::wait_to_write(Done done) {
  socket_.async_wait(write_waits_for_, [self = shared_from_this(), done = std::move(done)](
                                           const boost::system::error_code& error) mutable {
    if (error) return done(lost(error.message()));
    const Progress progress = self->send();
    if (progress == Progress::kWaits) return self->wait_to_write(std::move(done));
    done(progress == Progress::kDone ? drover::done() : lost(self->trouble_));
  });
}

uint32_t Connection::packets_out_of_order() {
  if (!reports_order_) return 0;
  const auto packets = tcp_packets_out_of_order(socket_.native_handle());
  reports_order_ = packets.has_value();  // this does not change
  return packets.value_or(0);
}

void Connection::close() {
  boost::system::error_code ignored;
  if (tls_ && socket_.is_open()) tls_->close();
  socket_.shutdown(boost::asio::socket_base::shutdown_both, ignored);
  socket_.close(ignored);
}

}  // namespace drover

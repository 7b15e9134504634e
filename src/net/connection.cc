#include "net/connection.h"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <limits>

namespace drover {
namespace {

// Asio's own completion condition moves at most 64 KB per system call; this one lets the kernel
// take all it can.
struct TransferEverything {
  size_t operator()(const boost::system::error_code& error, size_t /*transferred*/) const {
    return error ? 0 : std::numeric_limits<int>::max();
  }
};

Status to_status(const boost::system::error_code& error) {
  if (!error) return done();
  if (error == boost::asio::error::eof)
    return Error{ErrorKind::kDisconnected, "the connection was closed"};
  return Error{ErrorKind::kDisconnected, error.message()};
}

}  // namespace

void Connection::read(std::span<std::byte> into, Done done) {
  boost::asio::async_read(
      socket_, boost::asio::buffer(into.data(), into.size()), TransferEverything{},
      [self = shared_from_this(), done = std::move(done)](const boost::system::error_code& error,
                                                          size_t) { done(to_status(error)); });
}

void Connection::write(const std::vector<boost::asio::const_buffer>& parts, Done done) {
  boost::asio::async_write(
      socket_, parts, TransferEverything{},
      [self = shared_from_this(), done = std::move(done)](const boost::system::error_code& error,
                                                          size_t) { done(to_status(error)); });
}

void Connection::close() {
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::socket_base::shutdown_both, ignored);
  socket_.close(ignored);
}

}  // namespace drover

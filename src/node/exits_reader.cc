#include "node/exits_reader.h"

#include <unistd.h>

#include <boost/asio/read.hpp>
#include <utility>

namespace drover {

ExitsReader::ExitsReader(boost::asio::io_context& loop, int fd,
                         std::function<void(const ExitReport&)> on_exit)
    : exits_(loop), on_exit_(std::move(on_exit)) {
  if (fd >= 0) exits_.assign(::dup(fd));
}

void ExitsReader::start() {
  if (!exits_.is_open()) return;
  boost::asio::async_read(exits_, boost::asio::buffer(bytes_),
                          [this](const boost::system::error_code& error, size_t) {
                            if (error) return;
                            on_exit_(read_exit_report(bytes_));
                            start();
                          });
}

}  // namespace drover

#include "node/exits_reader.h"

#include <unistd.h>

#include <boost/asio/read_until.hpp>
#include <istream>
#include <utility>

namespace drover {

ExitsReader::ExitsReader(boost::asio::io_context& loop, int fd,
                         std::function<void(const std::string&, const std::string&)> on_exit)
    : exits_(loop), on_exit_(std::move(on_exit)) {
  if (fd >= 0) exits_.assign(::dup(fd));
}

void ExitsReader::start() {
  if (!exits_.is_open()) return;
  boost::asio::async_read_until(exits_, exit_lines_, '\n',
                                [this](const boost::system::error_code& error, size_t) {
                                  if (error) return;
                                  std::istream lines(&exit_lines_);
                                  std::string line;
                                  std::getline(lines, line);
                                  const size_t colon = line.find(':');
                                  if (colon != std::string::npos)
                                    on_exit_(line.substr(0, colon), line.substr(colon + 2));
                                  start();
                                });
}

}  // namespace drover

// ExitsReader: reads from the launcher how processes of the run ended.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/streambuf.hpp>
#include <functional>
#include <string>

namespace drover {

class ExitsReader {
 public:
  // `on_exit` is called on the loop with each process's name and how it ended. `fd` stays the
  // caller's; -1: there is nothing to read.
  ExitsReader(boost::asio::io_context& loop, int fd,
              std::function<void(const std::string& peer, const std::string& how)> on_exit);

  void start();

 private:
  boost::asio::posix::stream_descriptor exits_;
  boost::asio::streambuf exit_lines_;
  const std::function<void(const std::string&, const std::string&)> on_exit_;
};

}  // namespace drover

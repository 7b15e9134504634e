// ExitsReader: reads the launcher's reports of how processes of the run ended.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "node/exit_report.h"

namespace drover {

class ExitsReader {
 public:
  // `on_exit` is called on the loop with each report. The caller keeps `fd`; -1: there are no
  // reports.
  ExitsReader(boost::asio::io_context& loop, int fd,
              std::function<void(const ExitReport&)> on_exit);

  void start();

 private:
  boost::asio::posix::stream_descriptor exits_;
  ExitReportBytes bytes_{};
  const std::function<void(const ExitReport&)> on_exit_;
};

}  // namespace drover

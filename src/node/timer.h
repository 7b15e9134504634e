// Timer: calls a function at a given time. There is one such time, which can be changed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "core/time.h"
#include "node/clock.h"

namespace drover {

class Timer {
 public:
  Timer(boost::asio::io_context& loop, std::function<void()> wake)
      : timer_(loop), wake_(std::move(wake)) {}

  // Sets the time of the call, in place of an earlier one; absent: no call.
  void set(std::optional<TimePoint> at) {
    if (at == at_) return;
    at_ = at;
    timer_.cancel();
    if (!at) return;
    timer_.expires_after(*at - clock_now());
    timer_.async_wait([this, at](const boost::system::error_code& error) {
      // The timer may have expired just before it was set again.
      if (error || at_ != at) return;
      at_.reset();
      wake_();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  std::function<void()> wake_;
  std::optional<TimePoint> at_;
};

}  // namespace drover

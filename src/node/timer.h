// Timer: wakes a state machine at the moment at which it wants to be woken.
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

  // Sets it to this moment instead of any other; absent: it is not to go off.
  void set(std::optional<TimePoint> at) {
    if (at == at_) return;
    at_ = at;
    timer_.cancel();
    if (!at) return;
    timer_.expires_after(*at - clock_now());
    timer_.async_wait([this, at](const boost::system::error_code& error) {
      // One that has expired while it was being replaced does not count any more.
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

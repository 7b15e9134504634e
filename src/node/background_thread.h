// BackgroundThread: runs one task at a time beside an event loop, with the lowest priority.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>

#include "core/check.h"

namespace drover {

class BackgroundThread {
 public:
  // `loop` must outlive this; everything is called on its thread.
  explicit BackgroundThread(boost::asio::io_context& loop) : loop_(loop) {}
  // Waits for the task under way, which should check stopping() regularly.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  bool busy() const { return busy_; }
  // For the task: its result is not needed any more.
  bool stopping() const { return stopping_; }

  // Calls `work` on the thread, then `then` with its result on the loop. False: no thread could be
  // started. REQUIRES: not busy().
  template <typename Work, typename Then>
  bool begin(Work work, Then then) {
    DROVER_CHECK(!busy_);
    return start([this, work = std::move(work), then = std::move(then)]() mutable {
      boost::asio::post(loop_, [this, made = work(), then = std::move(then)]() mutable {
        busy_ = false;
        then(std::move(made));
      });
    });
  }

 private:
  bool start(std::function<void()> body);

  boost::asio::io_context& loop_;
  std::thread thread_;
  bool busy_ = false;
  std::atomic<bool> stopping_ = false;
};

// Blocks all signals while it exists. A thread that is started meanwhile inherits the mask, so that
// signals reach the thread that handles them.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace drover

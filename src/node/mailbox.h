// Mailbox: passes messages from any thread to an event loop, in the order in which they were put
// in.
//
// Posting them to the loop one by one would not keep the order: asio defers what a loop's own
// thread posts until the handler returns, and what another thread posts meanwhile is run first. An
// older pull that arrives after a newer one would replace it, and the worker would wait for ever.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <iterator>
#include <utility>

#include "core/mutex.h"
#include "wire/outbox.h"

namespace drover {

class Mailbox {
 public:
  // `deliver` is called on the loop's thread. REQUIRES: the loop outlives this, and this the last
  // handler that the loop runs.
  Mailbox(boost::asio::io_context& loop, std::function<void(Outbox)> deliver)
      : loop_(loop), deliver_(std::move(deliver)) {}

  // From any thread.
  void put(Outbox messages) {
    if (messages.empty()) return;
    const MutexLock lock(mutex_);
    std::move(messages.begin(), messages.end(), std::back_inserter(waiting_));
    if (std::exchange(planned_, true)) return;
    boost::asio::post(loop_, [this] { empty(); });
  }

  // Delivers all messages that are in it. REQUIRES: called on the loop's thread.
  void empty() {
    Outbox messages;
    {
      const MutexLock lock(mutex_);
      planned_ = false;
      messages = std::exchange(waiting_, {});
    }
    if (!messages.empty()) deliver_(std::move(messages));
  }

 private:
  boost::asio::io_context& loop_;
  const std::function<void(Outbox)> deliver_;
  Mutex mutex_;
  Outbox waiting_ DROVER_GUARDED_BY(mutex_);
  bool planned_ DROVER_GUARDED_BY(mutex_) = false;  // empty() has been posted
};

}  // namespace drover

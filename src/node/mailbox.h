// Mailbox: messages from any thread to an event loop, delivered in the order in which they were put
// in.
//
// Posting them to the loop one by one does not keep that order: what a loop with one thread posts
// to itself it puts aside until its handler has returned, and what another thread posts meanwhile
// goes first. A pull that is overtaken so by the next one would undo it, and be waited for for
// ever.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "wire/outbox.h"

namespace drover {

class Mailbox {
 public:
  // `deliver` is called on the loop's thread. Both must outlive this, and this the loop's last
  // turn.
  Mailbox(boost::asio::io_context& loop, std::function<void(Outbox)> deliver)
      : loop_(loop), deliver_(std::move(deliver)) {}

  // From any thread.
  void put(Outbox messages) {
    if (messages.empty()) return;
    const std::lock_guard lock(mutex_);
    std::move(messages.begin(), messages.end(), std::back_inserter(waiting_));
    if (std::exchange(planned_, true)) return;
    boost::asio::post(loop_, [this] { empty(); });
  }

  // Delivers what is in it now. On the loop's thread.
  void empty() {
    Outbox messages;
    {
      const std::lock_guard lock(mutex_);
      planned_ = false;
      messages = std::exchange(waiting_, {});
    }
    if (!messages.empty()) deliver_(std::move(messages));
  }

 private:
  boost::asio::io_context& loop_;
  const std::function<void(Outbox)> deliver_;
  std::mutex mutex_;
  Outbox waiting_;        // guarded by mutex_
  bool planned_ = false;  // to be emptied; guarded by mutex_
};

}  // namespace drover

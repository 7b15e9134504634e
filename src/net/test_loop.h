// For tests of code on an event loop.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "net/socket.h"

namespace drover {

// Runs the loop until the condition is true. Returns false if it is not true after a minute.
template <typename Condition>
bool run_until(boost::asio::io_context& loop, Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (loop.stopped()) loop.restart();
    if (loop.run_one_until(until) == 0) return condition();
  }
  return true;
}

class LoopTest : public ::testing::Test {
 protected:
  template <typename Condition>
  bool run_until(Condition&& condition) {
    return drover::run_until(loop_, condition);
  }

  boost::asio::io_context loop_{1};
};

// An address without answer, like that of an unreachable host: no process accepts there, and the
// queue of pending connections is full.
class Unanswered {
 public:
  explicit Unanswered(boost::asio::io_context& loop) : acceptor_(loop) {
    const auto any = parse_endpoint("tcp:127.0.0.1:0").value().address;
    acceptor_.open(any.protocol());
    acceptor_.bind(any);
    acceptor_.listen(0);
    queued_ = connect_socket(loop, address(), "the queue");
    EXPECT_TRUE(queued_.ok());
  }
  std::string address() const { return to_text(acceptor_.local_endpoint()); }

 private:
  boost::asio::basic_socket_acceptor<SocketProtocol> acceptor_;
  Result<Socket> queued_ = invalid_input("not connected yet");
};

}  // namespace drover

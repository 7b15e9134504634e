// ChannelPair: both ends of a connection in one process, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "node/channel.h"

namespace drover {

// `near` is used by the code under test. Everything that arrives at `far` is recorded.
struct ChannelPair {
  explicit ChannelPair(boost::asio::io_context& loop) {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    const auto channel = [&](int fd) {
      return std::make_shared<Channel>(Socket(loop, SocketProtocol(AF_UNIX, 0), fd), kRun);
    };
    near = channel(fds[0]);
    far = channel(fds[1]);
    Channel::Callbacks callbacks;
    callbacks.on_control = [this](Control message) {
      controls.push_back(std::move(message));
      return done();
    };
    callbacks.on_frame = [this](const FrameHeader& header) {
      frames.push_back(header);
      return done();
    };
    callbacks.payload_for = [this](const FrameHeader& header) -> Result<std::span<std::byte>> {
      floats.resize(header.length / sizeof(float));
      return std::as_writable_bytes(std::span(floats));
    };
    callbacks.on_closed = [this](const Error&) { closed = true; };
    far->start(std::move(callbacks));
  }
  ~ChannelPair() {
    near->close();
    far->close();
  }
  ChannelPair(const ChannelPair&) = delete;
  ChannelPair& operator=(const ChannelPair&) = delete;

  static constexpr RunId kRun = 0x1234;

  std::shared_ptr<Channel> near;
  std::shared_ptr<Channel> far;
  std::vector<Control> controls;
  std::vector<FrameHeader> frames;
  std::vector<float> floats;  // payload of the last frame that had one
  bool closed = false;
};

}  // namespace drover

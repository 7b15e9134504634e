#include "system/far_end.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/float_buffer.h"
#include "net/shared_memory.h"
#include "net/socket.h"
#include "node/channel.h"
#include "system/processes.h"
#include "wire/limits.h"

namespace drover {
namespace {

// Bytes queued at a channel, so that it never waits for the next message.
constexpr uint64_t kQueuedBytes = 2U << 20;

class ChannelEnd {
 public:
  ChannelEnd(Socket socket, ConstBuffer message)
      : message_(std::move(message)),
        channel_(std::make_shared<Channel>(std::move(socket), kBenchRun)) {
    Channel::Callbacks callbacks;
    callbacks.on_frame = [this](const FrameHeader& request) {
      if (request.type == FrameType::kStop) {
        channel_->send(Frame{request, {}});
      } else {
        bytes_ = request.version;
        frames_left_ = request.step * frames_of(bytes_);
        next_ = 0;
        send_some();
      }
      return done();
    };
    callbacks.on_floats_sent = [this](const ConstBuffer&) {
      --queued_;
      send_some();
    };
    callbacks.on_closed = [](const Error&) {};
    channel_->start(std::move(callbacks));
  }

 private:
  void send_some() {
    const uint64_t frames =
        std::max<uint64_t>(2, kQueuedBytes / std::min<uint64_t>(bytes_, kBlockBytes));
    while (frames_left_ > 0 && queued_ < frames) {
      const uint64_t begin = next_ * kBlockBytes;
      const uint64_t length = std::min<uint64_t>(kBlockBytes, bytes_ - begin);
      channel_->send(Frame{{.type = FrameType::kBlock, .block = static_cast<BlockId>(next_)},
                           FloatSlice{message_, begin / sizeof(float), length / sizeof(float)}});
      ++queued_;
      --frames_left_;
      next_ = (next_ + 1) % frames_of(bytes_);
    }
  }

  const ConstBuffer message_;
  std::shared_ptr<Channel> channel_;
  uint64_t bytes_ = 0;
  uint64_t next_ = 0;  // frame of the message
  uint64_t frames_left_ = 0;
  uint64_t queued_ = 0;
};

// Like a worker and a shard on one host: the bytes stay in shared memory, a reference to them is
// sent, and the other end acknowledges when it has copied them.
class SharedEnd {
 public:
  SharedEnd(Socket socket, std::shared_ptr<SharedMemory> memory)
      : memory_(std::move(memory)),
        channel_(std::make_shared<Channel>(std::move(socket), kBenchRun)) {
    std::fill_n(memory_->data(), memory_->size(), std::byte{1});
    Channel::Callbacks callbacks;
    callbacks.on_frame = [this](const FrameHeader& request) {
      if (request.type == FrameType::kStop) {
        channel_->send(Frame{request, {}});
        return done();
      }
      if (request.type == FrameType::kPull) {
        left_ = request.step;
        for (uint64_t i = 0; i < kSharedMessages; ++i) offer(static_cast<BlockId>(i));
      } else {
        offer(request.block);
      }
      return done();
    };
    callbacks.on_closed = [](const Error&) {};
    channel_->start(std::move(callbacks));
    channel_->send(control_frame(Ready{}), memory_->file());
  }

 private:
  void offer(BlockId place) {
    if (left_ == 0) return;
    --left_;
    channel_->send(Frame{{.type = FrameType::kOffer, .block = place}, {}});
  }

  std::shared_ptr<SharedMemory> memory_;
  std::shared_ptr<Channel> channel_;
  uint64_t left_ = 0;
};

class PlainEnd {
 public:
  PlainEnd(Socket socket, ConstBuffer message)
      : socket_(std::move(socket)), message_(std::move(message)) {
    listen();
  }

 private:
  void listen() {
    boost::asio::async_read(socket_, boost::asio::buffer(&request_, sizeof(request_)),
                            TransferAll{}, [this](const auto& error, size_t) {
                              if (error) return;
                              request_.bytes == 0 ? echo() : send(request_.count);
                            });
  }
  void echo() {
    boost::asio::async_write(socket_, boost::asio::buffer(&request_, sizeof(request_)),
                             TransferAll{}, [this](const auto& error, size_t) {
                               if (!error) listen();
                             });
  }
  void send(uint64_t left) {
    if (left == 0) return listen();
    const std::array<boost::asio::const_buffer, 2> parts = {
        boost::asio::buffer(&request_, sizeof(request_)),
        boost::asio::buffer(message_->data(), request_.bytes)};
    boost::asio::async_write(socket_, parts, TransferAll{},
                             [this, left](const auto& error, size_t) {
                               if (!error) send(left - 1);
                             });
  }

  Socket socket_;
  const ConstBuffer message_;
  PlainRequest request_;
};

}  // namespace

uint64_t frames_of(uint64_t message_bytes) {
  return (message_bytes + kBlockBytes - 1) / kBlockBytes;
}

int run_far_end(const FarEndSettings& settings) {
  const auto give_up = [](const Error& error) {
    spdlog::error("{}", error.message);
    return 1;
  };
  if (const Status entered = enter_network_namespace(settings.netns); !entered)
    return give_up(entered.error());
  boost::asio::io_context loop(1);
  auto ours = connect_socket(loop, settings.channel_address, "the benchmark");
  if (!ours) return give_up(ours.error());
  auto plain = connect_socket(loop, settings.plain_address, "the benchmark");
  if (!plain) return give_up(plain.error());
  const auto message = std::make_shared<FloatBuffer>(settings.largest_message / sizeof(float));
  std::fill_n(message->data(), message->size(), 1.0F);
  PlainEnd plain_end(std::move(plain).value(), message);
  std::optional<ChannelEnd> channel_end;
  std::optional<SharedEnd> shared_end;
  if (settings.share_memory) {
    auto memory = SharedMemory::create(kSharedMessages * settings.largest_message,
                                       "messages of the benchmark", SharedMemory::Pages::kAtOnce);
    if (!memory) return give_up(memory.error());
    shared_end.emplace(std::move(ours).value(), std::move(memory).value());
  } else {
    channel_end.emplace(std::move(ours).value(), message);
  }
  loop.run();
  return 0;
}

}  // namespace drover

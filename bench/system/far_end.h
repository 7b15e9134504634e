// The far end of `system_bench transport`: another process that echoes and sends data on request,
// over drover's channel and over plain Asio.
#pragma once

#include <array>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "core/ids.h"

namespace drover {

inline constexpr RunId kBenchRun = 1;

// A request for `count` messages of `bytes` each. 0 bytes: only an echo of the request.
struct PlainRequest {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::array<uint64_t, 6> rest{};  // pads it to the length of a frame's header
};
static_assert(sizeof(PlainRequest) == 64);

// Lets the kernel take all it can. By default Asio transfers at most 64 KB per call.
struct TransferAll {
  size_t operator()(const boost::system::error_code& error, size_t /*transferred*/) const {
    return error ? 0 : std::numeric_limits<int>::max();
  }
};

// The number of frames of a message, each with at most a block.
uint64_t frames_of(uint64_t message_bytes);

// Maximum number of messages in shared memory that the near end has not copied yet.
inline constexpr uint64_t kSharedMessages = 2;

struct FarEndSettings {
  std::string channel_address;
  std::string plain_address;
  std::string netns;             // to enter first; empty: none
  uint64_t largest_message = 0;  // in bytes
  bool share_memory = false;     // messages are in shared memory, and only references are sent
};

// Serves until its connections close. Returns the exit status of the process.
int run_far_end(const FarEndSettings& settings);

}  // namespace drover

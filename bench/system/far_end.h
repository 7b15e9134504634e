// The far end of `system_bench transport`: another process that echoes and sends what it is asked
// for, over our channel and over plain Asio.
#pragma once

#include <array>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "core/ids.h"

namespace drover {

inline constexpr RunId kBenchRun = 1;

// What both are asked for: `count` messages of `bytes` each. 0 bytes: only an echo of the request.
struct PlainRequest {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::array<uint64_t, 6> rest{};  // as long as a frame's header
};
static_assert(sizeof(PlainRequest) == 64);

// Lets the kernel take all it can; Asio by itself moves 64 KB at most with each call.
struct TransferAll {
  size_t operator()(const boost::system::error_code& error, size_t /*transferred*/) const {
    return error ? 0 : std::numeric_limits<int>::max();
  }
};

// A message moves over a channel in frames of at most a block: how many.
uint64_t frames_of(uint64_t message_bytes);

// Messages in shared memory that the near end has not copied out yet, at most; each has its place.
inline constexpr uint64_t kSharedMessages = 2;

struct FarEndSettings {
  std::string channel_address;
  std::string plain_address;
  std::string netns;             // to enter first; empty: none
  uint64_t largest_message = 0;  // in bytes
  bool share_memory = false;     // messages lie in shared memory and only word of them is sent
};

// Serves until its connections are gone. Returns the process's exit status.
int run_far_end(const FarEndSettings& settings);

}  // namespace drover

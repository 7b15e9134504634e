// WorkerBlock: a group of workers that the vectorised passes process together.
#pragma once

#include <array>
#include <cstdint>

#include "forecast/learned/strata.h"
#include "forecast/learned/worker_features.h"

namespace drover {

// Small enough that the data of a block fits into the first-level cache.
inline constexpr uint32_t kBlock = 64;

// The orders of a block's columns, as a structure of arrays.
struct BlockOrders {
  alignas(64) std::array<uint16_t, kBlock> flip{};
  alignas(64) std::array<uint16_t, kBlock> first_odd{};
  alignas(64) std::array<uint16_t, kBlock> second_odd{};
  alignas(64) std::array<uint16_t, kBlock> turn{};
  alignas(64) std::array<float, kBlock> jitter{};

  void set(size_t i, const Order& order) {
    flip[i] = order.flip;
    first_odd[i] = order.first_odd;
    second_odd[i] = order.second_odd;
    turn[i] = order.turn;
    jitter[i] = order.jitter;
  }
};

// Entries beyond `count` are unspecified.
struct WorkerBlock {
  uint32_t count = 0;
  std::array<WorkerId, kBlock> ids{};
  std::array<WorkerView, kBlock> views{};  // kShared
  BlockOrders orders;
};

// Destination of samples: sample k of the block's worker i goes to times[k * stride + i].
struct SampleTarget {
  float* times = nullptr;
  size_t stride = 0;
  uint32_t samples = 0;
};

}  // namespace drover

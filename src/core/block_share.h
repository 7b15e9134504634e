// How many blocks there are, and how many a share of them is: whoever waits for a share, and
// whoever counts on that, must agree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/layout.h"

namespace drover {

// At least one. A share that was made of a number of blocks is that number. REQUIRES: share > 0,
// blocks > 0.
inline uint32_t blocks_needed(double share, uint32_t blocks) {
  constexpr double kRounding = 1e-9;
  const double needed = std::ceil(share * static_cast<double>(blocks) - kRounding);
  return std::clamp(static_cast<uint32_t>(std::max(needed, 1.0)), 1u, blocks);
}

// The largest block of a run with so many shards: the usual one, unless that would leave shards
// without any. Then there are about two for each.
inline uint32_t block_floats_for(const Layout& layout, uint32_t shards) {
  constexpr uint64_t kLeast = 256;
  if (plan_blocks(layout, shards).blocks.size() >= shards) return kBlockFloatsMax;
  const uint64_t even = layout.parameter_count() / (2 * uint64_t{shards});
  return static_cast<uint32_t>(std::clamp<uint64_t>(even, kLeast, kBlockFloatsMax));
}

}  // namespace drover

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

// The largest block of a run with so many shards: up to `most`, as long as every shard has several
// of that size; the usual one, unless that would leave shards without any. Then there are about two
// for each.
inline uint32_t block_floats_for(const Layout& layout, uint32_t shards,
                                 uint32_t most = kBlockFloats) {
  constexpr uint64_t kLeast = 256;
  const uint64_t each = layout.parameter_count() / shards;
  if (most > kBlockFloats && each / kBlocksPerShard > kBlockFloats)
    return static_cast<uint32_t>(std::min<uint64_t>(each / kBlocksPerShard, most));
  const uint32_t usual = std::min(kBlockFloats, most);
  if (plan_blocks(layout, shards, usual).blocks.size() >= shards) return usual;
  return static_cast<uint32_t>(std::clamp<uint64_t>(each / 2, kLeast, kBlockFloats));
}

}  // namespace drover

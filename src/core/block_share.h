// Block counts: how large blocks are, and how many blocks a share of them is. Workers that wait for
// a share and shards that predict it use the same rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/layout.h"

namespace drover {

// The number of blocks in `share` of `blocks`, rounded up, at least 1. For share = n / blocks it is
// exactly n. REQUIRES: share > 0, blocks > 0.
inline uint32_t blocks_needed(double share, uint32_t blocks) {
  constexpr double kRounding = 1e-9;
  const double needed = std::ceil(share * static_cast<double>(blocks) - kRounding);
  return std::clamp(static_cast<uint32_t>(std::max(needed, 1.0)), 1u, blocks);
}

// The maximum block size in floats for this number of shards:
// - up to `most`, if every shard then still has kBlocksPerShard blocks;
// - otherwise kBlockFloats, if every shard then has a block;
// - otherwise so that there are about two blocks for each shard.
inline uint32_t block_floats_for(const Layout& layout, uint32_t shards,
                                 uint32_t most = kBlockFloats) {
  constexpr uint64_t kLeast = 256;
  const uint64_t each = layout.parameter_count() / shards;
  if (most > kBlockFloats && each / kBlocksPerShard > kBlockFloats)
    return static_cast<uint32_t>(std::min<uint64_t>(each / kBlocksPerShard, most));
  const uint32_t standard = std::min(kBlockFloats, most);
  if (plan_blocks(layout, shards, standard).blocks.size() >= shards) return standard;
  return static_cast<uint32_t>(std::clamp<uint64_t>(each / 2, kLeast, kBlockFloats));
}

}  // namespace drover

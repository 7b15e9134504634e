// CheckpointPart: everything a shard knows of its blocks at one version, enough to go on from
// there.
#pragma once

#include <cstdint>
#include <vector>

#include "core/float_buffer.h"
#include "core/ids.h"

namespace drover {

// A stretch of the flat buffer (core/layout.h) with what its optimiser remembers. Blocks are cut
// otherwise for another number of shards, so a stretch is named by its place and not by a BlockId.
struct SavedBlock {
  uint64_t offset = 0;   // into the flat buffer, in floats
  uint32_t length = 0;   // in floats
  uint64_t updates = 0;  // made so far
  double beta1_power = 1.0;
  double beta2_power = 1.0;
  // Of `length` floats each, never changed once they are here; null: the optimiser keeps none.
  ConstBuffer parameters;
  ConstBuffer momentum;
  ConstBuffer squares;
  ConstBuffer average;
  // What its guard remembers (shard/norm_guard.h); empty: it has none.
  std::vector<float> lengths = {};
};

struct CheckpointPart {
  ShardId shard = 0;
  Version version = 0;
  std::vector<SavedBlock> blocks;  // in the order of the flat buffer
};

// What the coordinator remembers of the gradients' noise (core/gradient_noise.h).
struct SavedNoise {
  double signal = 0.0;
  double noise = 0.0;
  uint64_t steps = 0;
  bool operator==(const SavedNoise&) const = default;
};

}  // namespace drover

// CheckpointPart: the complete state of a shard's blocks at one version. Training can continue from
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/float_buffer.h"
#include "core/ids.h"

namespace drover {

// A range of the flat buffer (core/layout.h) with the state of its optimiser. The range is
// identified by its offset and not by a BlockId, since another number of shards has other blocks.
struct SavedBlock {
  uint64_t offset = 0;   // into the flat buffer, in floats
  uint32_t length = 0;   // in floats
  uint64_t updates = 0;  // number of updates so far
  double beta1_power = 1.0;
  double beta2_power = 1.0;
  // `length` floats each, immutable. Null: the optimiser does not use it.
  ConstBuffer parameters;
  ConstBuffer momentum;
  ConstBuffer squares;
  ConstBuffer average;
  // Norms that the guard remembers (shard/norm_guard.h); empty: there is no guard.
  std::vector<float> lengths = {};
};

struct CheckpointPart {
  ShardId shard = 0;
  Version version = 0;
  std::vector<SavedBlock> blocks;  // in the order of the flat buffer
};

// The state of the coordinator's NoiseScale (core/gradient_noise.h).
struct SavedNoise {
  double signal = 0.0;
  double noise = 0.0;
  uint64_t steps = 0;
  bool operator==(const SavedNoise&) const = default;
};

}  // namespace drover

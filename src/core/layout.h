// Layout: the tensors of a model and their offsets in one flat buffer of floats.
//
// Workers, shards and evaluators hold parameters and gradients as such a flat buffer. Only `tasks`
// knows what the tensors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace drover {

enum class TensorKind : uint8_t {
  kTrained,   // workers push a gradient, the optimiser updates it
  kAveraged,  // workers push values, which are averaged: running statistics of batch normalisation
};

struct TensorSpec {
  std::string name;
  uint64_t size = 0;  // in floats, without padding
  TensorKind kind = TensorKind::kTrained;
  double rate = 1.0;                 // its learning rate as a multiple of the run's
  double decay = 1.0;                // its weight decay as a multiple of the run's
  std::vector<uint64_t> shape = {};  // for exports; empty: one dimension
  // Which settings of LearningRate are its own, counted from 1; 0: it is learned as the run says.
  // A step may have a gradient for one tensor of a group and none for its neighbor, so each tensor
  // with a group has blocks of its own.
  uint32_t group = 0;
  bool operator==(const TensorSpec&) const = default;
};

class Layout {
 public:
  Layout() = default;
  explicit Layout(std::vector<TensorSpec> tensors);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // Where tensor `index` begins, in floats. A multiple of 16, so that every tensor is aligned.
  uint64_t offset(size_t index) const { return offsets_[index]; }
  // Size of the flat buffer in floats, with padding.
  uint64_t buffer_size() const { return buffer_size_; }
  // Number of parameters: floats without padding.
  uint64_t parameter_count() const;
  // Equal layouts have equal fingerprints. Peers compare them before they exchange blocks.
  uint64_t fingerprint() const;

  bool operator==(const Layout& other) const { return tensors_ == other.tensors_; }

 private:
  std::vector<TensorSpec> tensors_;
  std::vector<uint64_t> offsets_;
  uint64_t buffer_size_ = 0;
};

// A tensor, a slice of a large one, or several small ones: the unit that is pushed, aggregated,
// versioned and pulled.
struct Block {
  BlockId id = 0;
  uint32_t tensor = 0;   // the first tensor
  uint32_t tensors = 1;  // number of tensors; the padding between them is part of the block
  uint64_t offset = 0;   // into the flat buffer, in floats
  uint32_t length = 0;   // in floats
  ShardId shard = 0;
  TensorKind kind = TensorKind::kTrained;
  bool operator==(const Block&) const = default;
};

struct BlockPlan {
  std::vector<Block> blocks;  // blocks[i].id == i, in the order of the flat buffer
  uint32_t shards = 1;

  std::vector<BlockId> blocks_of_shard(ShardId shard) const;
  std::vector<BlockId> blocks_of_tensor(uint32_t tensor) const;

  bool operator==(const BlockPlan&) const = default;
};

inline constexpr uint32_t kBlockFloats = 64 * 1024;  // 256 KB: fits a core's second-level cache
// For blocks that are read in place (shared memory). Small blocks would only cost messages there.
inline constexpr uint32_t kBlockFloatsInPlace = 256 * 1024;
inline constexpr uint32_t kBlockFloatsMax = kBlockFloatsInPlace;  // in any run
inline constexpr uint32_t kBlockBytes = kBlockFloats * sizeof(float);

// Neighbouring small tensors share a block of at most kGatheredFloatsMax floats (64 KB), and of at
// most 1 / kBlocksPerShard of a shard's floats. Every block costs messages, but a shard needs
// several blocks to balance load and to aggregate while workers still compute.
inline constexpr uint32_t kGatheredFloatsMax = 16 * 1024;
inline constexpr uint32_t kBlocksPerShard = 4;

// Splits tensors into blocks of at most `block_floats_max` floats, merges small neighbours with
// equal learning settings, and assigns blocks to shards so that all have nearly the same number of
// bytes: largest block first, each to the least loaded shard. REQUIRES: shards >= 1,
// block_floats_max >= 1.
BlockPlan plan_blocks(const Layout& layout, uint32_t shards,
                      uint32_t block_floats_max = kBlockFloats);

}  // namespace drover

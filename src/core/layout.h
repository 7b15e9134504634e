// Layout: which tensors a model has, and where each lies in one flat buffer of floats.
//
// Workers, shards and evaluators all hold parameters and gradients as such a flat buffer; only
// `tasks` knows what the tensors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace drover {

enum class TensorKind : uint8_t {
  kTrained,   // pushed as a gradient, changed by the optimiser
  kAveraged,  // pushed as a value, averaged over contributors: running statistics of batch
              // normalisation
};

struct TensorSpec {
  std::string name;
  uint64_t size = 0;  // in floats, without padding
  TensorKind kind = TensorKind::kTrained;
  double rate = 1.0;                 // of the run's learning rate, that it is changed with
  double decay = 1.0;                // of the run's weight decay
  std::vector<uint64_t> shape = {};  // for whoever reads the values elsewhere; empty: a row
  bool operator==(const TensorSpec&) const = default;
};

class Layout {
 public:
  Layout() = default;
  explicit Layout(std::vector<TensorSpec> tensors);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // Where tensor `index` begins, in floats; always a multiple of 16, so that every tensor is
  // aligned.
  uint64_t offset(size_t index) const { return offsets_[index]; }
  // Floats of the flat buffer, padding included.
  uint64_t buffer_size() const { return buffer_size_; }
  // Floats without padding: what people call the number of parameters.
  uint64_t parameter_count() const;
  // Equal layouts have equal fingerprints; peers compare them before they exchange blocks.
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
  uint32_t tensor = 0;   // the first
  uint32_t tensors = 1;  // how many, with the padding between them
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
// Where blocks are read in place nothing is gained by small ones, and each costs messages.
inline constexpr uint32_t kBlockFloatsInPlace = 256 * 1024;
inline constexpr uint32_t kBlockFloatsMax = kBlockFloatsInPlace;  // in any run
inline constexpr uint32_t kBlockBytes = kBlockFloats * sizeof(float);

// Neighbours are gathered into blocks of at most so many floats (64 KB), and of at most this share
// of what a shard holds: each block costs messages, but shards can only be loaded alike, and work
// while others compute, if they have several.
inline constexpr uint32_t kGatheredFloatsMax = 16 * 1024;
inline constexpr uint32_t kBlocksPerShard = 4;

// Cuts tensors into blocks of at most `block_floats_max`, gathers small neighbours that are learned
// alike, and spreads the blocks over the shards so that all carry nearly the same number of
// bytes: largest block first, each to the least loaded shard.
// REQUIRES: shards >= 1, block_floats_max >= 1.
BlockPlan plan_blocks(const Layout& layout, uint32_t shards,
                      uint32_t block_floats_max = kBlockFloats);

}  // namespace drover

// BlockMap: how a run's parameters are divided into blocks, and the blocks among shards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/block_share.h"
#include "core/layout.h"

namespace drover {

class BlockMap {
 public:
  // `block_floats_max`: the most floats of a block, if a shard has several blocks of that size.
  BlockMap(const Layout& layout, uint32_t shards, uint32_t block_floats_max)
      : tensors_(layout.tensors()),
        plan_(plan_blocks(layout, shards, block_floats_for(layout, shards, block_floats_max))) {
    for (const Block& block : plan_.blocks) ++on_[block.shard];
  }

  const BlockPlan& plan() const { return plan_; }
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  uint32_t count() const { return static_cast<uint32_t>(plan_.blocks.size()); }
  // The number of blocks of each shard. A shard without blocks is absent (there are more shards
  // than blocks): it has nothing to close or to save.
  const std::map<ShardId, uint32_t>& on_shards() const { return on_; }
  // The name of the first tensor in a block. "?" if there is no such block: peers are not trusted.
  std::string tensor_of(BlockId block) const {
    return block < plan_.blocks.size() ? tensors_[plan_.blocks[block].tensor].name : "?";
  }

 private:
  const std::vector<TensorSpec> tensors_;
  const BlockPlan plan_;
  std::map<ShardId, uint32_t> on_;
};

}  // namespace drover

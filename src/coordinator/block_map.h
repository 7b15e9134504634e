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
  // `block_floats_max`: of the largest block, if shards have several such.
  BlockMap(const Layout& layout, uint32_t shards, uint32_t block_floats_max)
      : tensors_(layout.tensors()),
        plan_(plan_blocks(layout, shards, block_floats_for(layout, shards, block_floats_max))) {
    for (const Block& block : plan_.blocks) ++on_[block.shard];
  }

  const BlockPlan& plan() const { return plan_; }
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  uint32_t count() const { return static_cast<uint32_t>(plan_.blocks.size()); }
  // How many blocks each shard has. A shard without any is absent (more shards than blocks): it has
  // nothing to close or to save.
  const std::map<ShardId, uint32_t>& on_shards() const { return on_; }
  // The first tensor in a block, by name; "?" if there is no such block: peers are not trusted.
  std::string tensor_of(BlockId block) const {
    return block < plan_.blocks.size() ? tensors_[plan_.blocks[block].tensor].name : "?";
  }

 private:
  const std::vector<TensorSpec> tensors_;
  const BlockPlan plan_;
  std::map<ShardId, uint32_t> on_;
};

}  // namespace drover

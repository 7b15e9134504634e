#include "coordinator/block_map.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(BlockMap, CountsTheBlocksOfEachShard) {
  const BlockMap blocks(Layout({{"a", 40'000}, {"b", 32}, {"c", 30'000}}), 2, 8'192);
  uint32_t sum = 0;
  for (const auto& [shard, count] : blocks.on_shards()) {
    EXPECT_EQ(count, blocks.plan().blocks_of_shard(shard).size());
    sum += count;
  }
  EXPECT_EQ(blocks.on_shards().size(), 2u);
  EXPECT_EQ(sum, blocks.count());
  EXPECT_GT(sum, 2u);
  EXPECT_EQ(blocks.tensors().size(), 3u);
}

TEST(BlockMap, AShardWithoutBlocksIsAbsent) {
  const BlockMap blocks(Layout({{"a", 8}}), 3, kBlockFloats);
  EXPECT_EQ(blocks.count(), 1u);
  EXPECT_EQ(blocks.on_shards(), (std::map<ShardId, uint32_t>{{0, 1}}));
}

TEST(BlockMap, NamesTheTensorOfABlock) {
  const BlockMap blocks(Layout({{"a", 40'000}, {"b", 32}, {"c", 30'000}}), 2, 8'192);
  EXPECT_EQ(blocks.tensor_of(0), "a");
  EXPECT_EQ(blocks.tensor_of(blocks.count() - 1), "c");
  EXPECT_EQ(blocks.tensor_of(blocks.count()), "?");
}

}  // namespace
}  // namespace drover

// A layout aligns tensors and does not let them overlap. A plan covers every float exactly once and
// balances the shards.
#include "core/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "core/block_share.h"

namespace drover {
namespace {

Layout random_layout(std::mt19937_64& random) {
  std::vector<TensorSpec> tensors(1 + random() % 20);
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = {.name = "tensor" + std::to_string(i),
                  .size = random() % 5 == 0 ? random() % 10 : random() % 3000,
                  .kind = random() % 4 == 0 ? TensorKind::kAveraged : TensorKind::kTrained};
  }
  return Layout(std::move(tensors));
}

TEST(BlockFloats, AreMoreIfEveryShardHasSeveralSuchBlocks) {
  const Layout large({{.name = "w", .size = 100 * kBlockFloatsInPlace}});
  EXPECT_EQ(block_floats_for(large, 2), kBlockFloats);
  EXPECT_EQ(block_floats_for(large, 2, kBlockFloatsInPlace), kBlockFloatsInPlace);
  for (const uint32_t shards : {1u, 3u, 20u, 25u, 26u, 100u, 1000u}) {
    const uint32_t floats = block_floats_for(large, shards, kBlockFloatsInPlace);
    std::vector<uint32_t> blocks(shards);
    for (const Block& block : plan_blocks(large, shards, floats).blocks) ++blocks[block.shard];
    EXPECT_GE(*std::min_element(blocks.begin(), blocks.end()), shards <= 100 ? 4u : 1u) << shards;
  }
  const Layout small({{.name = "w", .size = 1000}});
  EXPECT_EQ(block_floats_for(small, 1, kBlockFloatsInPlace), kBlockFloats);
}

TEST(Layout, AlignsTensorsToCacheLines) {
  const Layout layout(
      {{.name = "w", .size = 17}, {.name = "b", .size = 16}, {.name = "c", .size = 1}});
  EXPECT_EQ(layout.offset(0), 0U);
  EXPECT_EQ(layout.offset(1), 32U);
  EXPECT_EQ(layout.offset(2), 48U);
  EXPECT_EQ(layout.buffer_size(), 64U);
  EXPECT_EQ(layout.parameter_count(), 34U);
}

TEST(Layout, WithoutTensorsIsEmpty) {
  EXPECT_EQ(Layout().buffer_size(), 0U);
  EXPECT_EQ(Layout().parameter_count(), 0U);
  EXPECT_TRUE(plan_blocks(Layout(), 3).blocks.empty());
}

TEST(Layout, TensorsDoNotOverlap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Layout layout = random_layout(random);
    uint64_t end = 0;
    for (size_t i = 0; i < layout.tensors().size(); ++i) {
      ASSERT_EQ(layout.offset(i) % 16, 0U);
      ASSERT_GE(layout.offset(i), end);
      end = layout.offset(i) + layout.tensors()[i].size;
    }
    ASSERT_LE(end, layout.buffer_size());
    ASSERT_EQ(layout.buffer_size() % 16, 0U);
  }
}

TEST(Layout, FingerprintDependsOnEveryField) {
  const std::vector<TensorSpec> tensors = {{.name = "w", .size = 8}, {.name = "b", .size = 4}};
  EXPECT_EQ(Layout(tensors).fingerprint(), Layout(tensors).fingerprint());
  EXPECT_EQ(Layout(tensors), Layout(tensors));

  std::vector<std::vector<TensorSpec>> others(7, tensors);
  others[0][0].name = "v";
  others[1][0].size = 9;  // the same offsets, but another layout
  others[2][1].kind = TensorKind::kAveraged;
  std::swap(others[3][0], others[3][1]);
  others[4].pop_back();
  others[5].push_back({.name = "", .size = 0});
  others[6][0].name = "wb";
  std::set<uint64_t> fingerprints = {Layout(tensors).fingerprint()};
  for (const auto& other : others) {
    EXPECT_FALSE(Layout(other) == Layout(tensors));
    fingerprints.insert(Layout(other).fingerprint());
  }
  EXPECT_EQ(fingerprints.size(), 8U);
}

TEST(PlanBlocks, SplitsLargeTensorsAndKeepsSmallOnesWhole) {
  const Layout layout(
      {{.name = "w", .size = 25}, {.name = "b", .size = 10, .kind = TensorKind::kAveraged}});
  const BlockPlan plan = plan_blocks(layout, 1, 10);
  ASSERT_EQ(plan.blocks.size(), 4U);
  EXPECT_EQ(plan.blocks[2], (Block{.id = 2, .tensor = 0, .offset = 20, .length = 5}));
  EXPECT_EQ(
      plan.blocks[3],
      (Block{.id = 3, .tensor = 1, .offset = 32, .length = 10, .kind = TensorKind::kAveraged}));
  EXPECT_EQ(plan.blocks_of_tensor(0), (std::vector<BlockId>{0, 1, 2}));
  EXPECT_EQ(plan.blocks_of_tensor(1), (std::vector<BlockId>{3}));
  EXPECT_EQ(plan.blocks_of_shard(0), (std::vector<BlockId>{0, 1, 2, 3}));
  EXPECT_TRUE(plan.blocks_of_shard(1).empty());
}

TEST(PlanBlocks, DoesNotMergeTensorsWithDifferentLearningSettings) {
  const Layout layout({{.name = "a", .size = 16},
                       {.name = "b", .size = 16},
                       {.name = "c", .size = 16, .rate = 0.5},
                       {.name = "d", .size = 16, .rate = 0.5, .decay = 0.0},
                       {.name = "e", .size = 1000}});
  const BlockPlan plan = plan_blocks(layout, 1);
  ASSERT_EQ(plan.blocks.size(), 4u);
  EXPECT_EQ(plan.blocks[0].tensors, 2u);
  EXPECT_NE(layout.fingerprint(), Layout({{.name = "a", .size = 16}}).fingerprint());
}

TEST(PlanBlocks, MergesSmallNeighboursOfOneKind) {
  // Like a network with batch normalisation: large tensors with small ones between them.
  std::vector<TensorSpec> tensors;
  for (int layer = 0; layer < 4; ++layer) {
    tensors.push_back({.name = "w", .size = 100'000});
    for (int small = 0; small < 3; ++small) tensors.push_back({.name = "s", .size = 20});
  }
  for (int small = 0; small < 8; ++small)
    tensors.push_back({.name = "mean", .size = 20, .kind = TensorKind::kAveraged});
  const Layout layout(tensors);
  const BlockPlan plan = plan_blocks(layout, 2);
  // Two slices of each large tensor, one block of the small tensors after it, one of all averages.
  ASSERT_EQ(plan.blocks.size(), 13U);
  EXPECT_EQ(plan.blocks[2], (Block{.id = 2,
                                   .tensor = 1,
                                   .tensors = 3,
                                   .offset = layout.offset(1),
                                   .length = 32 + 32 + 20,
                                   .shard = plan.blocks[2].shard}));
  EXPECT_EQ(plan.blocks[12].tensors, 8U);
  for (const uint32_t tensor : {1u, 2u, 3u})
    EXPECT_EQ(plan.blocks_of_tensor(tensor), std::vector<BlockId>{2});
  // With more shards fewer tensors are merged, so that every shard has a block.
  EXPECT_EQ(
      plan_blocks(Layout(std::vector<TensorSpec>(16, {.name = "s", .size = 16})), 4).blocks.size(),
      16U);
}

TEST(PlanBlocks, AssignsTheLargestBlockToTheLeastLoadedShard) {
  const Layout layout(
      {{.name = "a", .size = 3}, {.name = "b", .size = 8}, {.name = "c", .size = 5}});
  const BlockPlan plan = plan_blocks(layout, 2);
  // 8 to shard 0, 5 to shard 1, 3 to shard 1: 8 and 8.
  EXPECT_EQ(plan.blocks_of_shard(0), (std::vector<BlockId>{1}));
  EXPECT_EQ(plan.blocks_of_shard(1), (std::vector<BlockId>{0, 2}));
}

TEST(PlanBlocks, LeavesShardsEmptyRatherThanSplittingSmallTensors) {
  const BlockPlan plan = plan_blocks(Layout({{.name = "w", .size = 100}}), 4);
  EXPECT_EQ(plan.shards, 4U);
  EXPECT_EQ(plan.blocks.size(), 1U);
}

TEST(PlanBlocks, CoversEveryFloatOnceAndBalancesShards) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Layout layout = random_layout(random);
    const auto shards = static_cast<uint32_t>(1 + random() % 6);
    const auto block_floats_max = static_cast<uint32_t>(1 + random() % 500);
    const BlockPlan plan = plan_blocks(layout, shards, block_floats_max);

    std::vector<int> covered(layout.buffer_size(), 0);
    std::vector<uint64_t> load(shards, 0);
    uint64_t largest = 0;
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
      const Block& block = plan.blocks[i];
      ASSERT_EQ(block.id, i);
      ASSERT_GE(block.length, 1U);
      ASSERT_LE(block.length, block_floats_max);
      ASSERT_LT(block.shard, shards);
      ASSERT_GE(block.tensors, 1U);
      for (uint32_t tensor = block.tensor; tensor < block.tensor + block.tensors; ++tensor)
        ASSERT_TRUE(layout.tensors()[tensor].size == 0 ||
                    layout.tensors()[tensor].kind == block.kind);
      ASSERT_TRUE(i == 0 || block.offset > plan.blocks[i - 1].offset);
      for (uint64_t j = 0; j < block.length; ++j) ++covered[block.offset + j];
      load[block.shard] += block.length;
      largest = std::max<uint64_t>(largest, block.length);
    }
    for (size_t tensor = 0; tensor < layout.tensors().size(); ++tensor) {
      const uint64_t begin = layout.offset(tensor);
      for (uint64_t j = 0; j < layout.tensors()[tensor].size; ++j) {
        ASSERT_EQ(covered[begin + j], 1);
      }
    }
    ASSERT_TRUE(std::all_of(covered.begin(), covered.end(), [](int count) { return count <= 1; }));
    // A block goes to the least loaded shard, so no shard is ahead by more than its last block.
    const auto [lightest, heaviest] = std::minmax_element(load.begin(), load.end());
    ASSERT_LE(*heaviest - *lightest, largest);
    ASSERT_EQ(plan_blocks(layout, shards, block_floats_max).blocks, plan.blocks) << "repeatable";
  }
}

TEST(PlanBlocksDeathTest, RequiresAShardAndABlockSize) {
  EXPECT_DEATH(plan_blocks(Layout(), 0), "internal error");
  EXPECT_DEATH(plan_blocks(Layout(), 1, 0), "internal error");
}

}  // namespace
}  // namespace drover

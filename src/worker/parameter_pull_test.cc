// A pull ends with all blocks in one version, for any mixture of the shards' versions.
#include "worker/parameter_pull.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace drover {
namespace {

BlockPlan four_blocks_on_two_shards() {
  return plan_blocks(Layout({{"a", 16, {}}, {"b", 16, {}}, {"c", 16, {}}, {"d", 16, {}}}), 2);
}

TEST(ParameterPull, SendsOneRequestToEveryShard) {
  ParameterPull pull(3, four_blocks_on_two_shards(), PullKind::kTogether);
  Outbox out;
  pull.begin(7, out);
  ASSERT_EQ(out.size(), 2u);
  for (const Outgoing& each : out) {
    EXPECT_EQ(each.frame.header.type, FrameType::kPull);
    EXPECT_EQ(each.frame.header.version, 7u);
    EXPECT_EQ(each.frame.header.worker, 3u);
    EXPECT_EQ(each.frame.header.flags, 0u);
  }
  EXPECT_FALSE(pull.complete());
}

// A shard's answer to its last request.
FrameHeader answer(const Outbox& out, ShardId shard, BlockId block, Version version) {
  FrameHeader header{.type = FrameType::kParameters, .version = version, .block = block};
  for (const Outgoing& each : out) {
    if (each.to.index == shard) header.step = each.frame.header.step;
  }
  return header;
}

TEST(ParameterPull, IsCompleteWhenAllBlocksHaveArrived) {
  const BlockPlan plan = four_blocks_on_two_shards();
  ParameterPull pull(0, plan, PullKind::kTogether);
  Outbox out;
  pull.begin(1, out);
  for (BlockId block = 0; block < 4; ++block) {
    EXPECT_FALSE(pull.complete());
    pull.on_parameters(answer(out, plan.blocks[block].shard, block, 1), out);
  }
  EXPECT_TRUE(pull.complete());
  EXPECT_EQ(pull.version(), 1u);
}

TEST(ParameterPull, RepeatsTheRequestToShardsThatAreBehind) {
  const BlockPlan plan = four_blocks_on_two_shards();
  ParameterPull pull(0, plan, PullKind::kTogether);
  Outbox out;
  pull.begin(1, out);
  const auto first = plan.blocks_of_shard(0);
  const auto second = plan.blocks_of_shard(1);
  for (const BlockId block : first) pull.on_parameters(answer(out, 0, block, 1), out);
  const FrameHeader earlier = answer(out, 0, first[0], 2);
  for (const BlockId block : second) {
    const FrameHeader header = answer(out, 1, block, 2);
    if (pull.expects(header)) pull.on_parameters(header, out);
  }
  EXPECT_FALSE(pull.complete());
  EXPECT_FALSE(pull.expects(earlier)) << "it answers an earlier request";
  for (const BlockId block : first) pull.on_parameters(answer(out, 0, block, 2), out);
  for (const BlockId block : second) pull.on_parameters(answer(out, 1, block, 2), out);
  EXPECT_TRUE(pull.complete());
  EXPECT_EQ(pull.version(), 2u);
}

TEST(ParameterPull, AcceptsAMixtureInAsynchronousRuns) {
  const BlockPlan plan = four_blocks_on_two_shards();
  ParameterPull pull(0, plan, PullKind::kMixed);
  Outbox out;
  pull.begin(0, out);
  const Outbox asked = out;
  for (BlockId block = 0; block < 4; ++block) {
    EXPECT_FALSE(pull.complete());
    pull.on_parameters(answer(asked, plan.blocks[block].shard, block, 5 + block % 3), out);
  }
  EXPECT_TRUE(pull.complete());
  EXPECT_EQ(out.size(), asked.size()) << "no request is repeated";
  EXPECT_EQ(pull.version(), 7u) << "the first pull adopts the newest version";

  out.clear();
  pull.begin(8, out);
  for (BlockId block = 0; block < 4; ++block)
    pull.on_parameters(answer(out, plan.blocks[block].shard, block, 3), out);
  EXPECT_TRUE(pull.complete());
  EXPECT_EQ(pull.version(), 8u) << "later pulls count on their own";
}

TEST(ParameterPull, RequestsTheNewestSnapshotIfItsOwnIsGone) {
  ParameterPull pull(kEvaluator, four_blocks_on_two_shards(), PullKind::kSnapshot);
  Outbox out;
  pull.begin(10, out);
  EXPECT_EQ(out[0].frame.header.flags, kSnapshotFlag);
  FrameHeader gone{.type = FrameType::kGone, .step = out[0].frame.header.step, .version = 30};
  out.clear();
  pull.on_gone(gone, out);
  EXPECT_EQ(out.size(), 2u);
  EXPECT_EQ(pull.version(), 30u);
  EXPECT_FALSE(pull.expects(gone)) << "a repeated answer";
}

// Shards proceed to new versions at random times and answer late. The pull always ends, with one
// version.
TEST(ParameterPull, EndsInOneVersionUnderRandomProgress) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const BlockPlan plan =
        plan_blocks(Layout({{"a", 100, {}}, {"b", 50, {}}, {"c", 70, {}}}), 3, 20);
    std::vector<Version> version(plan.blocks.size(), 0);
    std::vector<std::optional<Version>> asked(3);  // by shard
    std::vector<std::vector<bool>> sent(3, std::vector<bool>(plan.blocks.size(), false));
    ParameterPull pull(0, plan, PullKind::kTogether);
    Outbox out;
    pull.begin(1, out);
    std::vector<Version> have(plan.blocks.size(), 0);
    std::vector<uint64_t> request(3, 0);
    for (int turn = 0; turn < 100'000 && !pull.complete(); ++turn) {
      for (const Outgoing& each : out) {
        asked[each.to.index] = each.frame.header.version;
        request[each.to.index] = each.frame.header.step;
        sent[each.to.index].assign(plan.blocks.size(), false);
      }
      out.clear();
      const auto id = static_cast<BlockId>(random() % plan.blocks.size());
      const ShardId shard = plan.blocks[id].shard;
      if (random() % 3 == 0 && version[id] < 20) {
        ++version[id];
      } else if (asked[shard] && !sent[shard][id] && version[id] >= *asked[shard]) {
        sent[shard][id] = true;
        const FrameHeader header{.type = FrameType::kParameters,
                                 .step = request[shard],
                                 .version = version[id],
                                 .block = id};
        ASSERT_TRUE(pull.expects(header));
        have[id] = version[id];
        pull.on_parameters(header, out);
      }
    }
    ASSERT_TRUE(pull.complete());
    for (const Version each : have) ASSERT_EQ(each, pull.version());
  }
}

}  // namespace
}  // namespace drover

// A partial pull completes with a share of the blocks, reports the others, and always completes.
#include "worker/partial_pull.h"

#include <gtest/gtest.h>

#include <random>

#include "core/block_share.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

BlockPlan blocks_on_shards(uint32_t blocks, uint32_t shards) {
  std::vector<TensorSpec> tensors;
  for (uint32_t i = 0; i < blocks; ++i) tensors.push_back({"t" + std::to_string(i), 16, {}});
  return plan_blocks(Layout(tensors), shards, 16);  // none are merged
}

FrameHeader block_of(BlockId block, Version version) {
  return {.type = FrameType::kParameters, .version = version, .block = block};
}

class PartialPullTest : public ::testing::Test {
 protected:
  void start(double share, Duration grace = {}) {
    pull_.emplace(7, plan_, PartialPull::Settings{share, grace});
    pull_->begin(0, now_, out_);
    for (BlockId block = 0; block < 4; ++block) come(block, 0);
  }
  void come(BlockId block, Version version) {
    ASSERT_TRUE(pull_->is_newer(block_of(block, version)));
    pull_->on_parameters(block_of(block, version), now_, out_);
  }
  void begin(Version version) {
    out_.clear();
    pull_->begin(version, now_, out_);
  }

  const BlockPlan plan_ = blocks_on_shards(4, 4);
  std::optional<PartialPull> pull_;
  TimePoint now_{};
  Outbox out_;
};

TEST_F(PartialPullTest, TheFirstPullWaitsForAllBlocks) {
  pull_.emplace(0, plan_, PartialPull::Settings{0.25, {}});
  pull_->begin(0, now_, out_);
  for (BlockId block = 0; block < 4; ++block) {
    EXPECT_FALSE(pull_->complete());
    come(block, 0);
  }
  EXPECT_TRUE(pull_->complete());
}

TEST_F(PartialPullTest, CompletesWithItsShareAndReportsStaleBlocks) {
  start(0.75);
  begin(1);
  come(0, 1);
  come(1, 1);
  EXPECT_FALSE(pull_->complete());
  come(2, 1);
  ASSERT_TRUE(pull_->complete());
  EXPECT_EQ(pull_->version(), 1u);
  const PartialPull::Freshness freshness = pull_->freshness();
  EXPECT_EQ(freshness.blocks, 4u);
  EXPECT_EQ(freshness.fresh, 3u);
  EXPECT_EQ(freshness.staleness_sum, 1u);
  EXPECT_EQ(freshness.staleness_max, 1u);
}

TEST_F(PartialPullTest, WaitsForTheGraceUnlessAllBlocksHaveArrived) {
  start(0.5, 5ms);
  now_ = 10ms;
  begin(1);
  come(0, 1);
  EXPECT_FALSE(pull_->wake_at());
  now_ = 12ms;
  come(1, 1);
  EXPECT_FALSE(pull_->complete());
  EXPECT_EQ(pull_->wake_at(), TimePoint(17ms));
  pull_->on_time(16ms);
  EXPECT_FALSE(pull_->complete());
  pull_->on_time(17ms);
  EXPECT_TRUE(pull_->complete());

  begin(2);
  for (BlockId block = 0; block < 4; ++block) come(block, 2);
  EXPECT_TRUE(pull_->complete()) << "all blocks have arrived";
}

TEST_F(PartialPullTest, CompletesWithTheNewestVersionOfTheShare) {
  start(0.5);
  begin(1);
  come(3, 4);
  EXPECT_FALSE(pull_->complete()) << "a shard with version 4 has closed step 1";
  come(0, 2);
  come(1, 3);
  EXPECT_FALSE(pull_->complete());
  come(1, 4);
  ASSERT_TRUE(pull_->complete());
  EXPECT_EQ(pull_->version(), 4u);
  EXPECT_EQ(pull_->freshness().staleness_sum, 2u + 4u);
  EXPECT_EQ(pull_->freshness().staleness_max, 4u);
}

TEST_F(PartialPullTest, RepeatsTheRequestToShardsThatAreBehind) {
  start(1.0);
  begin(1);
  out_.clear();
  come(3, 2);
  ASSERT_EQ(out_.size(), 3u);
  for (const Outgoing& each : out_) EXPECT_EQ(each.frame.header.version, 2u);
}

TEST_F(PartialPullTest, ALateBlockIsFreshOnlyWhenItIsUsed) {
  start(0.75);
  begin(1);
  for (const BlockId block : {0u, 1u, 2u}) come(block, 1);
  now_ = 40ms;
  pull_->on_late(block_of(3, 1), now_);
  EXPECT_FALSE(pull_->is_newer(block_of(3, 1)));
  EXPECT_EQ(pull_->freshness().fresh, 3u) << "the gradient was not computed on it";
  const auto responses = pull_->responses(50ms);
  EXPECT_EQ(responses[0], (PullResponse{0ms, true}));
  EXPECT_EQ(responses[3], (PullResponse{40ms, true}))
      << "its time is known although the pull did not wait for it";
  pull_->use_late(3, 1);
  begin(2);
  EXPECT_EQ(pull_->responses(60ms)[3], (PullResponse{20ms, false})) << "the time of this pull";
}

// A shard sends at most two rounds of blocks without a report of received blocks, which a pull has.
TEST_F(PartialPullTest, ReportsReceivedBlocksAndRepeatsAnOldReport) {
  start(1.0);
  begin(5);
  for (const Outgoing& each : out_) EXPECT_EQ(each.frame.header.place, 1u);
  out_.clear();
  come(2, 3);
  ASSERT_EQ(out_.size(), 1u) << "a whole round arrived, in another version than wanted";
  EXPECT_EQ(out_[0].to.index, plan_.blocks[2].shard);
  EXPECT_EQ(out_[0].frame.header.place, 2u);
  EXPECT_EQ(out_[0].frame.header.version, 5u);
}

TEST_F(PartialPullTest, AnotherShareAppliesFromItsStepOn) {
  start(1.0);
  pull_->on_share({.from = 2, .share = 0.5});
  begin(1);
  for (BlockId block = 0; block < 4; ++block) {
    EXPECT_FALSE(pull_->complete());
    come(block, 1);
  }
  begin(2);
  come(0, 2);
  EXPECT_FALSE(pull_->complete());
  come(1, 2);
  EXPECT_TRUE(pull_->complete());
}

TEST_F(PartialPullTest, DoesNotRepeatARequestForTheWantedVersion) {
  start(1.0);
  begin(1);
  EXPECT_EQ(pull_->version(), 1u);
  out_.clear();
  come(0, 1);
  EXPECT_TRUE(out_.empty());
}

TEST_F(PartialPullTest, TheGraceRestartsWithANewerVersion) {
  start(0.5, 10ms);
  begin(1);
  for (const BlockId block : {0u, 1u}) come(block, 1);
  EXPECT_EQ(pull_->wake_at(), TimePoint(10ms));
  now_ = 5ms;
  come(2, 2);
  EXPECT_FALSE(pull_->wake_at()) << "not enough blocks arrived in version 2";
  now_ = 6ms;
  come(0, 2);
  EXPECT_EQ(pull_->wake_at(), TimePoint(16ms));
}

TEST_F(PartialPullTest, AShardHasAnsweredWhenItsBlocksHaveArrivedInTheWantedVersion) {
  start(0.75);
  begin(1);
  for (const BlockId block : {0u, 1u, 2u}) come(block, 1);
  EXPECT_EQ(pull_->responses(9ms)[3], (PullResponse{9ms, false}));
  now_ = 20ms;
  begin(2);
  for (BlockId block = 0; block < 4; ++block) come(block, 2);
  pull_->on_late(block_of(0, 3), 30ms);
  for (const PullResponse& each : pull_->responses(40ms))
    EXPECT_EQ(each, (PullResponse{0ms, true}));
}

TEST_F(PartialPullTest, AShardWhoseBlocksArrivedEarlierAnswersAtOnce) {
  start(0.75);
  pull_->on_late(block_of(0, 1), 10ms);
  pull_->use_late(0, 1);
  now_ = 20ms;
  begin(1);
  EXPECT_EQ(pull_->responses(25ms)[0], (PullResponse{0ms, true}));
}

TEST(PartialPull, RepeatsTheRequestAfterAsManyBlocksAsTheShardHas) {
  const BlockPlan plan = blocks_on_shards(2, 1);
  PartialPull pull(7, plan, {.share = 1.0});
  Outbox out;
  pull.begin(0, 0ms, out);
  for (const BlockId block : {0u, 1u}) pull.on_parameters(block_of(block, 0), 0ms, out);
  pull.begin(5, 0ms, out);
  out.clear();
  pull.on_parameters(block_of(0, 3), 0ms, out);
  EXPECT_TRUE(out.empty());
  pull.on_parameters(block_of(1, 3), 0ms, out);
  EXPECT_EQ(out.size(), 1u);
}

// Compares with a direct implementation of the definition.
TEST(PartialPull, AgreesWithItsDefinition) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto blocks = static_cast<uint32_t>(1 + random() % 12);
    const double share = static_cast<double>(1 + random() % 100) / 100.0;
    PartialPull pull(0, blocks_on_shards(blocks, static_cast<uint32_t>(1 + random() % 3)),
                     {share, {}});
    const uint32_t needed = blocks_needed(share, blocks);
    std::vector<Version> held(blocks, 0);
    Outbox out;
    pull.begin(0, TimePoint{}, out);
    for (BlockId block = 0; block < blocks; ++block)
      pull.on_parameters(block_of(block, 0), TimePoint{}, out);
    Version wanted = 0;
    for (int turn = 0; turn < 60; ++turn) {
      if (pull.complete()) {
        wanted = std::max(pull.version() + 1, *std::max_element(held.begin(), held.end()));
        pull.begin(pull.version() + 1, TimePoint{}, out);
      } else {
        const auto block = static_cast<BlockId>(random() % blocks);
        held[block] += 1 + random() % 2;
        wanted = std::max(wanted, held[block]);
        pull.on_parameters(block_of(block, held[block]), TimePoint{}, out);
      }
      std::vector<Version> sorted = held;
      std::sort(sorted.rbegin(), sorted.rend());
      ASSERT_EQ(pull.complete(), sorted[needed - 1] >= wanted);
      if (!pull.complete()) continue;
      ASSERT_EQ(pull.version(), sorted[needed - 1]);
      ASSERT_GE(pull.freshness().fresh, needed);
    }
  }
}

}  // namespace
}  // namespace drover

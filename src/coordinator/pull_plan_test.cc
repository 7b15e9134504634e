#include "coordinator/pull_plan.h"

#include <gtest/gtest.h>

#include <utility>

namespace drover {
namespace {

using namespace std::chrono_literals;

const std::map<ShardId, uint32_t> kBlocksOn = {{0, 4}, {1, 4}};

// Shard 1 answers four seconds later than shard 0.
StepReport slow_pull() {
  return {.compute = 1s, .responses = {{.time = 1s, .came = true}, {.time = 5s, .came = true}}};
}

TEST(PullPlan, WaitsForAllBlocksByDefault) {
  PullPlan plan({}, kBlocksOn);
  EXPECT_FALSE(plan.is_partial());
  EXPECT_EQ(plan.share(), 1.0);
  EXPECT_EQ(plan.needed(8), 8u);
  EXPECT_FALSE(plan.decide(100, 2, 2));
}

TEST(PullPlan, AFixedShareStays) {
  PullPlan plan({.share = 0.6, .warmup = 0}, kBlocksOn);
  EXPECT_TRUE(plan.is_partial());
  EXPECT_EQ(plan.needed(8), 5u) << "4.8 blocks, rounded up";
  for (int i = 0; i < 40; ++i) plan.learn(slow_pull());
  EXPECT_FALSE(plan.decide(100, 2, 2));
  EXPECT_EQ(plan.share(), 0.6);
}

TEST(PullPlan, AChosenShareFollowsTheObservedResponses) {
  PullPlan plan({.share = 0.6, .choose = true, .warmup = 3}, kBlocksOn);
  EXPECT_TRUE(plan.is_partial());
  EXPECT_EQ(plan.share(), 1.0) << "it begins with all blocks";
  for (int i = 0; i < 40; ++i) plan.learn(slow_pull());
  EXPECT_FALSE(plan.decide(2, 2, 2)) << "in the warm-up";
  const auto chosen = plan.decide(3, 2, 2);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->share, 0.5);
  EXPECT_EQ(plan.share(), 0.5);
  EXPECT_EQ(plan.needed(8), 4u);
  EXPECT_FALSE(plan.decide(4, 2, 2)) << "it stays as it is";
}

}  // namespace
}  // namespace drover

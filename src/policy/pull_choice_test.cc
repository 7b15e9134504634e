// The share of blocks follows the response times of the shards: all blocks if shards are alike, all
// but one shard's if that one is slow, and a few less if single slow answers delay most steps.
#include "policy/pull_choice.h"

#include <gtest/gtest.h>

#include <random>

namespace drover {
namespace {

std::map<ShardId, uint32_t> even(uint32_t shards, uint32_t blocks = 4) {
  std::map<ShardId, uint32_t> on;
  for (ShardId shard = 0; shard < shards; ++shard) on[shard] = blocks;
  return on;
}

// Answers take about a second, within 10 ms; `delay` is added to each.
template <typename Delay>
std::vector<PullResponse> answers(uint32_t shards, std::mt19937_64& random, Delay delay) {
  std::uniform_real_distribution<double> jitter(1.0, 1.01);
  std::vector<PullResponse> all;
  for (ShardId shard = 0; shard < shards; ++shard)
    all.push_back({from_seconds(jitter(random) + delay(shard)), true});
  return all;
}

constexpr Duration kCompute = std::chrono::seconds(9);

TEST(PullChoice, WaitsForAllInTheWarmUpAndIfShardsAreAlike) {
  std::mt19937_64 random(1);
  PullChoice choice(even(32), 20);
  for (Step step = 0; step < 100; ++step) {
    for (int worker = 0; worker < 32; ++worker)
      choice.learn(kCompute, answers(32, random, [](ShardId) { return 0.0; }));
    ASSERT_FALSE(choice.decide(step, 32, 32)) << step;
  }
  EXPECT_EQ(choice.share(), 1.0);
}

TEST(PullChoice, LeavesOutAShardThatIsAlwaysSlow) {
  std::mt19937_64 random(2);
  PullChoice choice(even(8), 20);
  std::optional<event::PullShare> chosen;
  for (Step step = 0; step < 40; ++step) {
    for (int worker = 0; worker < 4; ++worker)
      choice.learn(kCompute, answers(8, random, [](ShardId shard) { return shard == 3 ? 6 : 0; }));
    const auto now = choice.decide(step, 4, 4);
    ASSERT_FALSE(now && step < 20);
    if (now) chosen = now;
  }
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->share, 28.0 / 32.0);
  EXPECT_EQ(chosen->shards_left_out, 1u);
  EXPECT_EQ(chosen->shards, 8u);
  // The shard is fast again; answers that workers did not wait for are measured too.
  for (Step step = 40; step < 300; ++step) {
    for (int worker = 0; worker < 4; ++worker)
      choice.learn(kCompute, answers(8, random, [](ShardId) { return 0.0; }));
    choice.decide(step, 4, 4);
  }
  EXPECT_EQ(choice.share(), 1.0);
}

// 0.16 % of answers are 4 s late: one worker in twenty has one, so in most steps at least one of 32
// workers does.
TEST(PullChoice, LeavesOutAFewIfOneOfManyAnswersIsLate) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  PullChoice all_workers(even(32), 20);
  PullChoice backups(even(32), 20);
  for (Step step = 0; step < 60; ++step) {
    for (int worker = 0; worker < 32; ++worker) {
      const auto pull =
          answers(32, random, [&](ShardId) { return uniform(random) < 0.0016 ? 4.0 : 0.0; });
      all_workers.learn(kCompute, pull);
      backups.learn(kCompute, pull);
    }
    all_workers.decide(step, 32, 32);
    backups.decide(step, 24, 32);
  }
  EXPECT_LT(all_workers.share(), 1.0);
  EXPECT_GE(all_workers.share(), 0.9);
  EXPECT_EQ(backups.share(), 1.0) << "eight backup workers hide the delay";
}

// A shard may have more blocks than another; the share must allow for the largest.
TEST(PullChoice, CountsBlocksNotShards) {
  std::mt19937_64 random(4);
  PullChoice choice({{0, 2}, {1, 10}, {3, 4}}, 0);
  for (int pull = 0; pull < 100; ++pull)
    choice.learn(kCompute, answers(4, random, [](ShardId shard) { return shard == 1 ? 60 : 0; }));
  ASSERT_TRUE(choice.decide(1, 1, 1));
  EXPECT_EQ(choice.share(), 6.0 / 16.0);
}

TEST(PullChoice, AMissingAnswerCountsAsItsBound) {
  PullChoice choice(even(4), 0);
  for (int pull = 0; pull < 100; ++pull) {
    choice.learn(kCompute, std::vector<PullResponse>{{from_seconds(1.0), true},
                                                     {from_seconds(1.0), true},
                                                     {from_seconds(1.0), true},
                                                     {from_seconds(10.0), false}});
  }
  ASSERT_TRUE(choice.decide(1, 2, 2));
  EXPECT_EQ(choice.share(), 0.75);
}

TEST(PullChoice, IgnoresInvalidValues) {
  PullChoice choice(even(2), 0);
  for (int pull = 0; pull < 100; ++pull) {
    choice.learn(kCompute, {});
    choice.learn(kCompute, std::vector<PullResponse>{{from_seconds(1.0), true}});
    choice.learn(from_seconds(-5.0), std::vector<PullResponse>(2));
    choice.learn(Duration::zero(), std::vector<PullResponse>(2));
  }
  EXPECT_FALSE(choice.decide(1, 1, 1));
}

}  // namespace
}  // namespace drover

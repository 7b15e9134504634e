// A block turns gradients into versions, with the settings of its tensor. Equal gradients give
// equal versions.
#include "shard/shard_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace drover {
namespace {

constexpr uint32_t kLength = 16;

TEST(ShardBlock, ChangesEachTensorWithItsOwnRateAndDecay) {
  const Layout layout({{"plain", 4, TensorKind::kTrained},
                       {"slow", 4, TensorKind::kTrained, 0.1},
                       {"undecayed", 4, TensorKind::kTrained, 1.0, 0.0}});
  const Plan plan{.workers = 1,
                  .steps = 2,
                  .learning = {.optimizer = {.weight_decay = 0.5}, .schedule = {.base = 1.0}},
                  .tensors = layout.tensors(),
                  .blocks = plan_blocks(layout, 1)};
  ASSERT_EQ(plan.blocks.blocks.size(), 3u);
  const float expected[] = {2.0f - (1.0f + 0.5f * 2.0f), 2.0f - 0.1f * (1.0f + 0.5f * 2.0f),
                            2.0f - 1.0f};
  for (const Block& block : plan.blocks.blocks) {
    BufferPool pool;
    ShardBlock hosted(block, plan, &pool, &pool);
    Membership members(1);
    const std::vector<float> initial(4, 2.0f);
    hosted.start(initial);
    SharedBuffer gradient = pool.take(4);
    std::fill(gradient->span().begin(), gradient->span().end(), 1.0f);
    ASSERT_EQ(hosted.add(0, 8, gradient), Answer::kAccepted);
    hosted.publish(1.0);
    hosted.next_version(members);
    EXPECT_FLOAT_EQ(hosted.parameters()->span()[0], expected[block.id]) << block.id;
  }
}

// With --deterministic neither the order of arrival nor a restart from a checkpoint changes the
// results, with and without outliers.
TEST(ShardBlock, ResultsDependOnTheGradientsAlone) {
  const Layout layout({{"one", kLength, TensorKind::kTrained}});
  const auto run = [&](uint64_t order, bool interrupted) {
    const Plan plan{
        .workers = 4,
        .steps = 30,
        .learning = {.schedule = {.base = 0.1}, .deterministic = true, .guard = GuardRule::kNorm},
        .checkpoint_every = 15,
        .tensors = layout.tensors(),
        .blocks = plan_blocks(layout, 1)};
    BufferPool pool;
    Membership members(4);
    auto block = std::make_unique<ShardBlock>(plan.blocks.blocks[0], plan, &pool, &pool);
    block->start(std::vector<float>(kLength, 0.0F));
    uint32_t outliers = 0;
    for (Step step = 0; step < plan.steps; ++step) {
      for (uint32_t i = 0; i < 4; ++i) {
        const auto worker = static_cast<WorkerId>((i * (order % 2 == 0 ? 1UL : 3UL) + order) % 4);
        SharedBuffer gradient = pool.take(kLength);
        for (size_t k = 0; k < kLength; ++k)
          gradient->data()[k] = std::sin(static_cast<float>(step * 31 + worker * 7UL + k));
        if ((step + worker) % 9 == 0) {
          for (float& value : gradient->span()) value *= 300.0F;
        }
        EXPECT_EQ(block->add(worker, 1 + worker, gradient), Answer::kAccepted);
        outliers += block->outlier_ratio() ? 1 : 0;
      }
      block->publish(0.1);
      block->next_version(members);
      if (!interrupted || step + 1 != 15) continue;
      auto saved = block->take_saved(15);
      block = std::make_unique<ShardBlock>(plan.blocks.blocks[0], plan, &pool, &pool);
      block->restore(*saved, 15, members);
    }
    EXPECT_GT(outliers, 5u);
    return std::vector<float>(block->parameters()->span().begin(),
                              block->parameters()->span().end());
  };
  const std::vector<float> first = run(0, false);
  for (uint64_t order = 1; order < 4; ++order) EXPECT_EQ(run(order, false), first) << order;
  EXPECT_EQ(run(2, true), first) << "interrupted";
}

TEST(ShardBlock, KeepsCopiesOfVersionsThatAreDue) {
  const Layout layout({{"one", kLength, TensorKind::kTrained}});
  const Plan plan{.workers = 1,
                  .steps = 5,
                  .evaluate_every = 2,
                  .learning = {.schedule = {.base = 1.0}},
                  .checkpoint_every = 3,
                  .tensors = layout.tensors(),
                  .blocks = plan_blocks(layout, 1)};
  BufferPool pool;
  Membership members(1);
  ShardBlock block(plan.blocks.blocks[0], plan, &pool, &pool);
  block.start(std::vector<float>(kLength, 0.0F));
  for (Step step = 0; step < plan.steps; ++step) {
    SharedBuffer gradient = pool.take(kLength);
    std::fill(gradient->span().begin(), gradient->span().end(), 1.0F);
    ASSERT_EQ(block.add(0, 1, gradient), Answer::kAccepted);
    block.publish(1.0);
    block.next_version(members);
  }
  EXPECT_TRUE(block.finished());
  EXPECT_FLOAT_EQ(block.snapshot(4)->span()[0], -4.0F);
  EXPECT_FLOAT_EQ(block.snapshot(5)->span()[0], -5.0F) << "the last one is always due";
  EXPECT_FLOAT_EQ(block.take_saved(3)->parameters->span()[0], -3.0F);
  EXPECT_FALSE(block.take_saved(4));
}

}  // namespace
}  // namespace drover

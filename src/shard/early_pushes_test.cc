// Pushes ahead of their block: one is kept for each worker and taken when the block reaches its
// step.
#include "shard/early_pushes.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(EarlyPushes, KeepsOnePushPerWorker) {
  EarlyPushes early;
  early.keep({.worker = 1, .step = 5, .samples = 2});
  early.keep({.worker = 1, .step = 7, .samples = 3});
  EXPECT_EQ(early.size(), 1u);
  ASSERT_NE(early.of(1), nullptr);
  EXPECT_EQ(early.of(1)->step, 7u);
  EXPECT_EQ(early.of(0), nullptr);
  early.forget(1);
  EXPECT_EQ(early.size(), 0u);
}

TEST(EarlyPushes, TakesPushesOfAStepInOrderOfWorkers) {
  EarlyPushes early;
  early.keep({.worker = 3, .step = 5});
  early.keep({.worker = 0, .step = 6});
  early.keep({.worker = 2, .step = 5});
  EXPECT_EQ(early.take(5)->worker, 2u);
  EXPECT_EQ(early.take(5)->worker, 3u);
  EXPECT_FALSE(early.take(5));
  EXPECT_EQ(early.size(), 1u);
}

TEST(EarlyPushes, TakesTheNewestPushBeforeAStepFirst) {
  EarlyPushes early;
  early.keep({.worker = 0, .step = 4});
  early.keep({.worker = 1, .step = 5});
  early.keep({.worker = 2, .step = 5});
  early.keep({.worker = 3, .step = 6});
  EXPECT_EQ(early.take_before(6)->worker, 1u);
  EXPECT_EQ(early.take_before(6)->worker, 2u);
  EXPECT_EQ(early.take_before(6)->worker, 0u);
  EXPECT_FALSE(early.take_before(6));
}

}  // namespace
}  // namespace drover

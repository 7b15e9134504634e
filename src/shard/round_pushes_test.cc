// The pushes of one block in an asynchronous run.
#include "shard/round_pushes.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(RoundPushes, CountsPerWorker) {
  RoundPushes pushes(2);
  EXPECT_TRUE(pushes.has_all_before(0, 1));
  EXPECT_FALSE(pushes.has_all_before(1, 1));
  pushes.on_push(1, 4);
  pushes.on_push(1, 2);
  EXPECT_TRUE(pushes.has_all_before(5, 1)) << "numbers never go back";
  EXPECT_FALSE(pushes.has_all_before(6, 1));
  EXPECT_FALSE(pushes.has_all_before(1, 0));
  pushes.on_joined(1);
  EXPECT_FALSE(pushes.has_all_before(1, 1)) << "a new incarnation counts from 0";
}

TEST(RoundPushes, CountsAppliedAndRefusedGradientsOfARound) {
  RoundPushes pushes(2);
  pushes.on_answered(true, 8);
  pushes.on_answered(false, 4);
  pushes.on_answered(true, 2);
  EXPECT_EQ(pushes.answered(), 3u);
  EXPECT_EQ(pushes.gradients(), 2u);
  EXPECT_EQ(pushes.samples(), 10u);
  pushes.open_next();
  EXPECT_EQ(pushes.answered(), 0u);
  EXPECT_EQ(pushes.gradients(), 0u);
  EXPECT_EQ(pushes.samples(), 0u);
}

}  // namespace
}  // namespace drover

#include "coordinator/early_closings.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;
using Turn = EarlyClosings::Turn;

// Shards 0 and 2 close steps, from step 5 on.
class EarlyClosingsTest : public ::testing::Test {
 protected:
  Turn accept(ShardId shard, Step step, Step open, TimePoint received = 1s) {
    return closings_.accept({.shard = shard, .closed = {.step = step}, .received = received}, open);
  }
  EarlyClosings closings_{{0, 2}, 5, 3};
};

TEST_F(EarlyClosingsTest, EachShardClosesItsStepsInOrder) {
  EXPECT_EQ(accept(0, 4, 5), Turn::kWrong);
  EXPECT_EQ(accept(0, 6, 5), Turn::kWrong);
  EXPECT_EQ(accept(0, 5, 5), Turn::kNow);
  EXPECT_EQ(accept(0, 5, 5), Turn::kWrong) << "twice";
  EXPECT_EQ(accept(2, 5, 6), Turn::kNow)
      << "late: with partial pulls the step is closed without it";
  EXPECT_EQ(accept(1, 5, 5), Turn::kWrong) << "it has no blocks";
  EXPECT_EQ(closings_.size(), 0u);
}

TEST_F(EarlyClosingsTest, KeepsEarlyClosingsUntilTheirStepOpens) {
  accept(0, 5, 5);
  EXPECT_EQ(accept(0, 6, 5, 2s), Turn::kEarly);
  EXPECT_EQ(closings_.size(), 1u);
  EXPECT_FALSE(closings_.take(5));
  const auto taken = closings_.take(6);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->shard, 0u);
  EXPECT_EQ(taken->closed.step, 6u);
  EXPECT_EQ(taken->received, 2s);
  EXPECT_EQ(closings_.size(), 0u);
  EXPECT_FALSE(closings_.take(6));
}

TEST_F(EarlyClosingsTest, ReturnsClosingsInOrderOfArrival) {
  accept(0, 5, 4);
  accept(0, 6, 4);
  accept(2, 5, 4);
  EXPECT_EQ(closings_.take(5)->shard, 0u);
  EXPECT_EQ(closings_.take(5)->shard, 2u);
  EXPECT_FALSE(closings_.take(5));
  EXPECT_EQ(closings_.take(7)->closed.step, 6u);
}

TEST_F(EarlyClosingsTest, KeepsAtMostTheLimit) {
  for (const Step step : {5u, 6u, 7u}) EXPECT_EQ(accept(0, step, 4), Turn::kEarly);
  EXPECT_EQ(accept(0, 8, 4), Turn::kWrong);
  EXPECT_EQ(accept(2, 5, 4), Turn::kWrong);
  EXPECT_EQ(accept(2, 5, 5), Turn::kNow) << "a closing of the open step is not kept";
  EXPECT_TRUE(closings_.take(5));
  EXPECT_EQ(accept(0, 8, 5), Turn::kEarly) << "the refused closing did not count";
}

}  // namespace
}  // namespace drover

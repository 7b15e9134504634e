// Copies of older versions of a block, and how long they are kept.
#include "shard/block_copies.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

ConstBuffer values() { return std::make_shared<FloatBuffer>(4); }

TEST(BlockCopies, ASnapshotIsDueForEachEvaluationAndAtTheEnd) {
  const BlockCopies copies({.steps = 7, .evaluate_every = 3});
  for (Version version = 1; version <= 7; ++version)
    EXPECT_EQ(copies.snapshot_due(version), version == 3 || version == 6 || version == 7)
        << version;
  EXPECT_FALSE(BlockCopies({.steps = 7}).snapshot_due(3));
}

TEST(BlockCopies, AVersionIsSavedForACheckpointOrForTheStandby) {
  const BlockCopies copies({.steps = 7, .checkpoint_every = 3});
  for (Version version = 1; version <= 7; ++version)
    EXPECT_EQ(copies.save_due(version), version == 3 || version == 6 || version == 7) << version;
  EXPECT_FALSE(BlockCopies({.steps = 7}).save_due(7));
  EXPECT_TRUE(BlockCopies({.steps = 7, .standby = true}).save_due(2));
}

TEST(BlockCopies, KeepsTheLastTwoSnapshots) {
  BlockCopies copies({.steps = 7});
  EXPECT_EQ(copies.newest_snapshot(), 0u);
  const ConstBuffer second = values();
  copies.keep_snapshot(1, values());
  copies.keep_snapshot(2, second);
  copies.keep_snapshot(4, values());
  EXPECT_EQ(copies.snapshot(1), nullptr);
  EXPECT_EQ(copies.snapshot(2), second);
  EXPECT_NE(copies.snapshot(4), nullptr);
  EXPECT_EQ(copies.newest_snapshot(), 4u);
}

TEST(BlockCopies, ASavedVersionIsTakenOnce) {
  BlockCopies copies({.steps = 7});
  copies.keep_saved(3, {.offset = 5});
  EXPECT_FALSE(copies.take_saved(4));
  EXPECT_EQ(copies.take_saved(3)->offset, 5u);
  EXPECT_FALSE(copies.take_saved(3));
}

}  // namespace
}  // namespace drover

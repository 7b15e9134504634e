#include "coordinator/checkpoint_tally.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

// A checkpoint every 4 of 10 steps, of two shards.
class CheckpointTallyTest : public ::testing::Test {
 protected:
  CheckpointTally::Saved save(ShardId shard, Version version) {
    return tally_.on_saved(
        shard, {.version = version, .file = "part-" + std::to_string(shard), .bytes = 10 + shard},
        2);
  }
  CheckpointTally::Saved fail(ShardId shard, Version version, CheckpointFailure cause,
                              int os_error = 0) {
    return tally_.on_saved(shard,
                           {.version = version,
                            .failure = cause,
                            .os_error = os_error,
                            .error = "no space left on device"},
                           2);
  }
  void keep(Version version) {
    for (const ShardId shard : {0u, 1u}) save(shard, version);
    ASSERT_TRUE(tally_.on_kept(version, done(), 1ms));
  }

  CheckpointTally tally_{4, 10};
};

TEST_F(CheckpointTallyTest, KnowsItsVersions) {
  EXPECT_TRUE(tally_.has(4));
  EXPECT_TRUE(tally_.has(8));
  EXPECT_TRUE(tally_.has(10)) << "after the last step";
  EXPECT_FALSE(tally_.has(5));
  EXPECT_FALSE(tally_.has(0)) << "the initial parameters";
  EXPECT_FALSE(CheckpointTally(0, 10).has(10));
}

TEST_F(CheckpointTallyTest, ACheckpointIsCompleteWhenAllShardsHaveSaved) {
  const auto first = save(1, 4);
  EXPECT_FALSE(first.all);
  EXPECT_TRUE(first.parts.empty());
  EXPECT_FALSE(save(0, 8).all) << "that is another version";
  const auto second = save(0, 4);
  EXPECT_TRUE(second.all);
  ASSERT_EQ(second.parts.size(), 2u);
  EXPECT_EQ(second.parts[0].file, "part-0");
  EXPECT_EQ(second.parts[1].file, "part-1");
  EXPECT_FALSE(tally_.any_kept()) << "its manifest is not written yet";
  const auto kept = tally_.on_kept(4, done(), 3ms);
  EXPECT_EQ(kept, EventPayload(event::CheckpointKept{.version = 4, .bytes = 21, .took = 3ms}));
  EXPECT_TRUE(tally_.any_kept());
}

TEST_F(CheckpointTallyTest, AFailureOfOneShardFailsTheCheckpoint) {
  const auto failed = fail(0, 4, CheckpointFailure::kSystem, 28);
  EXPECT_FALSE(failed.all);
  EXPECT_EQ(failed.failure, (event::CheckpointFailed{.version = 4,
                                                     .cause = CheckpointFailure::kSystem,
                                                     .os_error = 28,
                                                     .detail = "no space left on device"}));
  const auto second = save(1, 4);
  EXPECT_FALSE(second.failure);
  EXPECT_TRUE(second.all);
  EXPECT_TRUE(second.parts.empty());
  save(0, 8);
  EXPECT_EQ(save(1, 8).parts.size(), 2u) << "the next one is tried";
}

TEST_F(CheckpointTallyTest, ACauseIsReportedOnceUntilACheckpointIsKept) {
  EXPECT_TRUE(fail(0, 4, CheckpointFailure::kSystem, 28).failure);
  EXPECT_FALSE(fail(1, 4, CheckpointFailure::kSystem, 28).failure);
  EXPECT_TRUE(fail(0, 8, CheckpointFailure::kSystem, 5).failure) << "another system error";
  EXPECT_TRUE(fail(1, 8, CheckpointFailure::kBusy).failure) << "another cause";
  keep(4);
  EXPECT_TRUE(fail(0, 8, CheckpointFailure::kSystem, 28).failure);
}

TEST_F(CheckpointTallyTest, AFailedManifestIsReported) {
  EXPECT_EQ(tally_.on_kept(4, system_error("cannot write", 28), 1ms),
            EventPayload(event::CheckpointFailed{.version = 4,
                                                 .cause = CheckpointFailure::kSystem,
                                                 .os_error = 28,
                                                 .detail = "cannot write"}));
  EXPECT_EQ(tally_.on_kept(8, system_error("odd"), 1ms),
            EventPayload(event::CheckpointFailed{
                .version = 8, .cause = CheckpointFailure::kOther, .detail = "odd"}));
  EXPECT_EQ(tally_.on_kept(8, system_error("odd"), 1ms), std::nullopt);
  EXPECT_FALSE(tally_.any_kept());
}

TEST_F(CheckpointTallyTest, TheLastIsAwaitedUntilItIsKept) {
  EXPECT_TRUE(tally_.awaits_last());
  keep(8);
  EXPECT_TRUE(tally_.awaits_last());
  save(0, 10);
  save(1, 10);
  EXPECT_TRUE(tally_.awaits_last());
  EXPECT_TRUE(tally_.on_kept(10, done(), 1ms));
  EXPECT_FALSE(tally_.awaits_last());
}

TEST_F(CheckpointTallyTest, TheLastIsAwaitedUntilItFails) {
  fail(0, 8, CheckpointFailure::kOther);
  EXPECT_TRUE(tally_.awaits_last());
  EXPECT_FALSE(fail(0, 10, CheckpointFailure::kOther).failure) << "the cause was reported";
  EXPECT_FALSE(tally_.awaits_last());
}

TEST_F(CheckpointTallyTest, TheLastIsAwaitedUntilGiveUp) {
  EXPECT_EQ(tally_.give_up_last(), EventPayload(event::CheckpointFailed{
                                       .version = 10,
                                       .cause = CheckpointFailure::kTimeout,
                                       .detail = "the manifest was not written in time"}));
  EXPECT_FALSE(tally_.awaits_last());
}

TEST_F(CheckpointTallyTest, WithoutCheckpointsNoneIsAwaited) {
  EXPECT_FALSE(CheckpointTally(0, 10).awaits_last());
}

}  // namespace
}  // namespace drover

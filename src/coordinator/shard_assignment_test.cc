#include "coordinator/shard_assignment.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/peer.h"

namespace drover {
namespace {

class ShardAssignmentTest : public ::testing::Test {
 protected:
  void join(Role role, ShardId shard, std::vector<KeptVersion> kept = {}) {
    EXPECT_TRUE(assignment_
                    .on_hello({.role = role,
                               .index = shard,
                               .address = peer_name(role, shard),
                               .kept = std::move(kept)})
                    .ok());
  }
  ShardAssignment::Settled settle(bool waited = false) {
    return assignment_.settle(std::nullopt, waited);
  }
  ShardAssignment::Settled settle_kept(bool waited = false) {
    return assignment_.settle(std::pair(KeptVersion{9, 1}, std::set<ShardId>{0, 1}), waited);
  }
  ShardAssignment assignment_{2};
};

TEST_F(ShardAssignmentTest, AShardsOwnProcessServes) {
  join(Role::kStandby, 0);
  join(Role::kShard, 1);
  EXPECT_EQ(settle(), ShardAssignment::Settled::kNotYet);
  join(Role::kShard, 0);
  EXPECT_EQ(settle(), ShardAssignment::Settled::kYes);
  EXPECT_EQ(assignment_.serving(0), Role::kShard);
  EXPECT_EQ(assignment_.address(0), "shard 0");
  EXPECT_TRUE(assignment_.serves(Role::kShard, 0));
  EXPECT_FALSE(assignment_.serves(Role::kStandby, 0));
  assignment_.on_lost(Role::kStandby, 0);
  EXPECT_EQ(assignment_.here().size(), 2u);
}

TEST_F(ShardAssignmentTest, AStandbyServesIfTheOtherProcessIsMissing) {
  join(Role::kStandby, 0);
  join(Role::kShard, 1);
  EXPECT_EQ(settle(true), ShardAssignment::Settled::kYes);
  EXPECT_EQ(assignment_.serving(0), Role::kStandby);
}

TEST_F(ShardAssignmentTest, TheProcessThatKeepsTheVersionServes) {
  join(Role::kShard, 0);  // started again: it has nothing
  join(Role::kShard, 1, {{9, 1}});
  EXPECT_EQ(settle_kept(), ShardAssignment::Settled::kNotYet) << "its standby may still join";
  join(Role::kStandby, 0, {{8, 1}, {9, 1}});
  EXPECT_EQ(settle_kept(), ShardAssignment::Settled::kYes);
  EXPECT_EQ(assignment_.serving(0), Role::kStandby);
  EXPECT_EQ(assignment_.serving(1), Role::kShard);
}

TEST_F(ShardAssignmentTest, NeverSettlesIfNoProcessKeepsTheVersion) {
  join(Role::kShard, 0);
  join(Role::kShard, 1, {{9, 1}});
  EXPECT_EQ(settle_kept(true), ShardAssignment::Settled::kNever) << "its standby has not joined";
  join(Role::kStandby, 0, {{9, 2}});
  EXPECT_EQ(settle_kept(), ShardAssignment::Settled::kNever) << "that is of another incarnation";
}

TEST_F(ShardAssignmentTest, OnlyServingProcessesCountAsReady) {
  for (const ShardId shard : {0u, 1u}) {
    join(Role::kShard, shard);
    join(Role::kStandby, shard);
  }
  EXPECT_EQ(settle(), ShardAssignment::Settled::kYes);
  assignment_.on_ready(Role::kShard, 0);
  assignment_.on_ready(Role::kStandby, 1);
  EXPECT_FALSE(assignment_.all_ready());
  assignment_.on_ready(Role::kShard, 1);
  EXPECT_TRUE(assignment_.all_ready());
}

TEST_F(ShardAssignmentTest, AShardIsMissingWithoutAnyProcess) {
  EXPECT_EQ(assignment_.missing(), (std::vector<ShardId>{0, 1}));
  join(Role::kStandby, 0);
  EXPECT_EQ(assignment_.missing(), std::vector<ShardId>{1});
  join(Role::kShard, 1);
  EXPECT_TRUE(assignment_.missing().empty());
  assignment_.on_lost(Role::kStandby, 0);
  EXPECT_EQ(assignment_.missing(), std::vector<ShardId>{0});
}

TEST_F(ShardAssignmentTest, RefusesDuplicatesAndUnknownShards) {
  join(Role::kShard, 1);
  const auto refused = [&](ShardId shard) {
    const Status status = assignment_.on_hello({.role = Role::kShard, .index = shard});
    return status ? std::nullopt : std::optional(status.error().kind);
  };
  EXPECT_EQ(refused(1), ErrorKind::kNotNow) << "the connected one may be an earlier incarnation";
  EXPECT_EQ(refused(2), ErrorKind::kInvalidInput);
  EXPECT_EQ(refused(0), std::nullopt);
}

}  // namespace
}  // namespace drover

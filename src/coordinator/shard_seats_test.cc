#include "coordinator/shard_seats.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/peer.h"

namespace drover {
namespace {

class SeatsTest : public ::testing::Test {
 protected:
  void come(Role role, ShardId shard, std::vector<KeptVersion> kept = {}) {
    EXPECT_TRUE(seats_
                    .on_hello({.role = role,
                               .index = shard,
                               .address = peer_name(role, shard),
                               .kept = std::move(kept)})
                    .ok());
  }
  ShardSeats::Settled settle(bool waited = false) { return seats_.settle(std::nullopt, waited); }
  ShardSeats::Settled settle_kept(bool waited = false) {
    return seats_.settle(std::pair(KeptVersion{9, 1}, std::set<ShardId>{0, 1}), waited);
  }
  ShardSeats seats_{2};
};

TEST_F(SeatsTest, AShardsOwnProcessServes) {
  come(Role::kStandby, 0);
  come(Role::kShard, 1);
  EXPECT_EQ(settle(), ShardSeats::Settled::kNotYet);
  come(Role::kShard, 0);
  EXPECT_EQ(settle(), ShardSeats::Settled::kYes);
  EXPECT_EQ(seats_.serving(0), Role::kShard);
  EXPECT_EQ(seats_.address(0), "shard 0");
  EXPECT_TRUE(seats_.serves(Role::kShard, 0));
  EXPECT_FALSE(seats_.serves(Role::kStandby, 0));
  seats_.on_lost(Role::kStandby, 0);
  EXPECT_EQ(seats_.here().size(), 2u);
}

TEST_F(SeatsTest, AStandbyServesIfNobodyElseComes) {
  come(Role::kStandby, 0);
  come(Role::kShard, 1);
  EXPECT_EQ(settle(true), ShardSeats::Settled::kYes);
  EXPECT_EQ(seats_.serving(0), Role::kStandby);
}

TEST_F(SeatsTest, WhoKeepsWhatIsNeededServes) {
  come(Role::kShard, 0);  // started again: it has nothing
  come(Role::kShard, 1, {{9, 1}});
  EXPECT_EQ(settle_kept(), ShardSeats::Settled::kNotYet) << "its standby may still come";
  come(Role::kStandby, 0, {{8, 1}, {9, 1}});
  EXPECT_EQ(settle_kept(), ShardSeats::Settled::kYes);
  EXPECT_EQ(seats_.serving(0), Role::kStandby);
  EXPECT_EQ(seats_.serving(1), Role::kShard);
}

TEST_F(SeatsTest, WhatNobodyKeepsIsNotWaitedForInVain) {
  come(Role::kShard, 0);
  come(Role::kShard, 1, {{9, 1}});
  EXPECT_EQ(settle_kept(true), ShardSeats::Settled::kNever) << "its standby has not come";
  come(Role::kStandby, 0, {{9, 2}});
  EXPECT_EQ(settle_kept(), ShardSeats::Settled::kNever) << "that is of another life";
}

}  // namespace
}  // namespace drover

#include "policy/simple.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

Choice decide(Policy& policy, size_t alive) {
  std::vector<WorkerId> workers(alive);
  std::iota(workers.begin(), workers.end(), 0u);
  return policy.decide({0, workers});
}

Choice share_of(double share, size_t alive) {
  StaticSharePolicy policy(share);
  return decide(policy, alive);
}

TEST(Sync, WaitsForAll) {
  SyncPolicy policy;
  EXPECT_EQ(decide(policy, 12).cutoff, 12u);
  EXPECT_THAT(decide(policy, 12).reason, mentions("sync", 12));
  EXPECT_THAT(decide(policy, 1).reason, AllOf(mentions("sync"), Not(mentions(12))));
}

TEST(StaticShare, IsRoundedAsInThePaper) {
  EXPECT_EQ(share_of(0.943, 2175).cutoff, 2051u);  // 2051.025
  EXPECT_EQ(share_of(0.943, 158).cutoff, 149u);    // 148.994
  EXPECT_EQ(share_of(0.943, 106).cutoff, 100u);    // 99.958
}

TEST(StaticShare, IsAShareOfTheWorkersAliveAndAtLeastOne) {
  EXPECT_EQ(share_of(0.5, 10).cutoff, 5u);
  EXPECT_EQ(share_of(0.5, 4).cutoff, 2u);
  EXPECT_EQ(share_of(0.001, 10).cutoff, 1u);
  EXPECT_EQ(share_of(1.0, 10).cutoff, 10u);
  EXPECT_EQ(share_of(0.943, 4).cutoff, 3u) << "at least one backup worker";
  EXPECT_EQ(share_of(0.943, 1).cutoff, 1u);
  EXPECT_THAT(share_of(0.943, 98).reason, mentions("static", 92, 98, "0.943"));
}

TEST(StaticCount, ReturnsTheCountForAnyWorkersAlive) {
  StaticCountPolicy policy(60);
  EXPECT_EQ(decide(policy, 64).cutoff, 60u);
  EXPECT_THAT(decide(policy, 64).reason, mentions("static", 60, 64));
  EXPECT_EQ(decide(policy, 37).cutoff, 60u);
  EXPECT_THAT(decide(policy, 37).reason, AllOf(mentions("static", 60), Not(mentions(37))));
}

TEST(Deadline, IsATimeLimitForAllWorkers) {
  DeadlinePolicy policy(2.5);
  const Choice choice = decide(policy, 8);
  EXPECT_EQ(choice.cutoff, 8u);
  EXPECT_EQ(choice.time_limit, 2.5);
  EXPECT_EQ(choice.at_least, 1u);
  EXPECT_THAT(choice.reason, mentions("deadline", 8, "2.5"));
}

}  // namespace
}  // namespace drover

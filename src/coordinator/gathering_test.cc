#include "coordinator/gathering.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Gathering::Present kNone{};
constexpr Gathering::Present kJoined{.worker_joined = true};
constexpr Gathering::Present kServed{.shards_ready = true, .worker_joined = true};
constexpr Gathering::Present kReady{
    .shards_ready = true, .worker_joined = true, .worker_ready = true};

TEST(Gathering, WaitsSinceTheStart) {
  Gathering gathering({.join_timeout = 60s}, 100s);
  EXPECT_FALSE(gathering.overdue(kNone, 160s - 1ns));
  EXPECT_EQ(gathering.overdue(kNone, 160s), 60s);
  EXPECT_EQ(gathering.overdue(kReady, 170s), 60s) << "other processes are still missing";
}

TEST(Gathering, TheReturnTimeoutBeginsWhenTheFirstWorkerIsReady) {
  Gathering gathering({.join_timeout = 60s, .return_timeout = 15s}, 0s);
  EXPECT_FALSE(gathering.overdue(kServed, 10s));
  EXPECT_FALSE(gathering.overdue({.worker_joined = true, .worker_ready = true}, 15s))
      << "a worker cannot begin without all shards";
  EXPECT_FALSE(gathering.overdue(kReady, 20s));
  EXPECT_FALSE(gathering.overdue(kReady, 35s - 1ns));
  EXPECT_EQ(gathering.overdue(kReady, 35s), 15s);
}

TEST(Gathering, TheJoinTimeoutHoldsIfNoWorkerReturns) {
  Gathering gathering({.join_timeout = 60s, .return_timeout = 15s}, 0s);
  EXPECT_FALSE(gathering.overdue(kServed, 59s));
  EXPECT_EQ(gathering.overdue(kServed, 60s), 60s);
}

TEST(Gathering, ShardsHaveLongerToReadACheckpoint) {
  Gathering gathering({.join_timeout = 60s, .reads_checkpoint = true}, 0s);
  EXPECT_FALSE(gathering.overdue(kJoined, Gathering::kReadingMax - 1ns));
  EXPECT_EQ(gathering.overdue(kJoined, Gathering::kReadingMax), Gathering::kReadingMax);
}

TEST(Gathering, ReadingIsNotWaitedForIfNoWorkerJoins) {
  Gathering gathering({.join_timeout = 60s, .reads_checkpoint = true}, 0s);
  EXPECT_EQ(gathering.overdue(kNone, 60s), 60s);
}

TEST(Gathering, ReadingDoesNotShortenALongJoinTimeout) {
  Gathering gathering({.join_timeout = 2 * Gathering::kReadingMax, .reads_checkpoint = true}, 0s);
  EXPECT_FALSE(gathering.overdue(kJoined, 2 * Gathering::kReadingMax - 1ns));
}

TEST(Gathering, AfterReadingTheJoinTimeoutBeginsAgain) {
  Gathering gathering({.join_timeout = 60s, .reads_checkpoint = true}, 0s);
  EXPECT_FALSE(gathering.overdue(kServed, 200s));
  EXPECT_FALSE(gathering.overdue(kServed, 260s - 1ns));
  EXPECT_EQ(gathering.overdue(kReady, 260s), 60s);
}

TEST(Gathering, KeepersHaveTheirPatienceToJoin) {
  const Gathering gathering({}, 100s);
  EXPECT_FALSE(gathering.keepers_overdue(100s + Gathering::kKeeperPatience - 1ns));
  EXPECT_TRUE(gathering.keepers_overdue(100s + Gathering::kKeeperPatience));
}

TEST(Gathering, NamesMissingProcessesIfAShardIsMissing) {
  EXPECT_EQ(missing_with_shards({}, 3, 4), "");
  EXPECT_EQ(missing_with_shards({1}, 0, 4), "shard 1");
  EXPECT_EQ(missing_with_shards({0, 1}, 3, 4), "shard 0, shard 1, 3 of 4 workers");
}

}  // namespace
}  // namespace drover

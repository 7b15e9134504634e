#include "coordinator/worker_roster.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace drover {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<WorkerId>;

// Two workers of the start, two that may join later.
class WorkerRosterTest : public ::testing::Test {
 protected:
  static Hello hello(WorkerId worker, const std::string& host = "here") {
    return {.role = Role::kWorker, .index = worker, .host = host};
  }
  std::optional<ErrorKind> refused(WorkerId worker, const std::string& host = "here") {
    const Status status = roster_.check(hello(worker, host), now_);
    return status ? std::nullopt : std::optional(status.error().kind);
  }
  void join(WorkerId worker, const std::string& host = "here") {
    ASSERT_EQ(refused(worker, host), std::nullopt);
    roster_.join(hello(worker, host), now_);
  }
  void crash_loop(WorkerId worker, const std::string& host) {
    for (uint32_t loss = 0; loss <= Quarantine::kForgiven; ++loss) {
      join(worker, host);
      now_ += 1s;
      backoff_ = roster_.on_lost(worker, now_).backoff;
    }
  }

  WorkerRoster roster_{4, 2};
  Quarantine::Backoff backoff_;
  TimePoint now_{};
};

TEST_F(WorkerRosterTest, WorkersOfTheStartAreMembersBeforeTheyJoin) {
  EXPECT_EQ(roster_.members().list(), (Ids{0, 1}));
  EXPECT_TRUE(roster_.is_of_start(1));
  EXPECT_FALSE(roster_.is_of_start(2));
  EXPECT_EQ(roster_.missing(), 2u);
  join(1);
  EXPECT_EQ(roster_.missing(), 1u);
  join(2);
  EXPECT_EQ(roster_.missing(), 1u) << "a worker that may join later is not missing";
}

TEST_F(WorkerRosterTest, RefusesIndicesThatAreTakenOrDoNotExist) {
  EXPECT_EQ(refused(3), std::nullopt);
  EXPECT_EQ(refused(4), ErrorKind::kInvalidInput);
  join(3);
  EXPECT_EQ(refused(3), ErrorKind::kNotNow) << "the connected one may be an earlier incarnation";
  roster_.on_left(3);
  EXPECT_EQ(refused(3), std::nullopt);
}

TEST_F(WorkerRosterTest, OnlyWorkersThatHaveJoinedAreReady) {
  EXPECT_TRUE(roster_.none_ready());
  roster_.on_ready(0);
  EXPECT_FALSE(roster_.is_ready(0));
  EXPECT_TRUE(roster_.none_ready());
  join(0);
  join(1);
  EXPECT_FALSE(roster_.is_ready(0)) << "it had not joined when it reported";
  roster_.on_ready(0);
  EXPECT_TRUE(roster_.is_ready(0));
  EXPECT_FALSE(roster_.none_ready());
  EXPECT_FALSE(roster_.all_members_ready());
  roster_.on_ready(1);
  EXPECT_TRUE(roster_.all_members_ready());
}

TEST_F(WorkerRosterTest, AWorkerThatIsReadyBecomesAMember) {
  for (const WorkerId worker : {3u, 2u, 0u}) join(worker);
  for (const WorkerId worker : {3u, 0u}) roster_.on_ready(worker);
  EXPECT_EQ(roster_.add_ready(), Ids{3}) << "0 was a member";
  EXPECT_EQ(roster_.members().list(), (Ids{0, 1, 3}));
  EXPECT_EQ(roster_.add_ready(), Ids{});
  roster_.on_ready(2);
  EXPECT_EQ(roster_.add_ready(), Ids{2});
}

TEST_F(WorkerRosterTest, ALostWorkerStaysAMemberUntilItIsRemoved) {
  join(0);
  roster_.on_ready(0);
  EXPECT_TRUE(roster_.on_lost(0, now_).had_joined);
  EXPECT_FALSE(roster_.has_joined(0));
  EXPECT_FALSE(roster_.is_ready(0));
  EXPECT_TRUE(roster_.members().has(0));
  EXPECT_TRUE(roster_.remove_member(0));
  EXPECT_FALSE(roster_.remove_member(0));
  EXPECT_FALSE(roster_.on_lost(0, now_).had_joined);
  join(0);
  EXPECT_EQ(roster_.add_ready(), Ids{}) << "it must report ready again";
}

TEST_F(WorkerRosterTest, AWorkerOfTheStartThatCrashLoopsIsBackedOff) {
  crash_loop(0, "here");
  EXPECT_EQ(backoff_.losses, Quarantine::kForgiven + 1);
  EXPECT_EQ(backoff_.wait, Quarantine::kFirst);
  EXPECT_EQ(refused(0, "there"), ErrorKind::kNotNow)
      << "the record is the worker's, not the host's";
  EXPECT_EQ(refused(1, "here"), std::nullopt);
  now_ += Quarantine::kFirst;
  EXPECT_EQ(refused(0), std::nullopt);
}

TEST_F(WorkerRosterTest, WorkersThatJoinLaterShareTheBackoffOfTheirHost) {
  crash_loop(2, "here");
  EXPECT_EQ(refused(3, "here"), ErrorKind::kNotNow);
  EXPECT_EQ(refused(2, "there"), std::nullopt);
  EXPECT_EQ(refused(0, "here"), std::nullopt);
  const auto offer = roster_.offer_index("here", now_);
  ASSERT_FALSE(offer.ok());
  EXPECT_EQ(offer.error().message,
            "host here was lost 4 times in a row soon after joining; it is readmitted in 5s");
}

TEST_F(WorkerRosterTest, LeavingDoesNotCountAsALoss) {
  for (uint32_t times = 0; times < 20; ++times) {
    join(0);
    now_ += 1s;
    roster_.on_left(0);
  }
  EXPECT_FALSE(roster_.has_joined(0));
}

TEST_F(WorkerRosterTest, OffersEachFreeIndexOnce) {
  join(2);
  EXPECT_EQ(roster_.offer_index("here", now_).value(), 3u);
  EXPECT_EQ(roster_.offer_index("there", now_ + WorkerRoster::kPlaceKept - 1ns).error().message,
            "all 4 worker indices are in use; start the run with a larger --workers-max");
  EXPECT_EQ(roster_.offer_index("there", now_ + WorkerRoster::kPlaceKept).value(), 3u)
      << "the first process did not join";
}

TEST_F(WorkerRosterTest, AnIndexIsFreeWhenTheWorkerThatTookItLeaves) {
  EXPECT_EQ(roster_.offer_index("here", now_).value(), 2u);
  join(2);
  EXPECT_EQ(roster_.offer_index("here", now_).value(), 3u);
  roster_.on_left(2);
  EXPECT_EQ(roster_.offer_index("here", now_).value(), 2u);
}

TEST_F(WorkerRosterTest, IndicesOfTheStartAreReserved) {
  WorkerRoster roster(2, 2);
  EXPECT_EQ(roster.offer_index("here", now_).error().message,
            "this run takes no more workers; start it with --workers-max");
}

}  // namespace
}  // namespace drover

// What a guard may and must do is known only as far as no median could say otherwise.
#include "sim/guard_book.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random_draw.h"
#include "shard/norm_guard.h"

namespace drover {
namespace {

constexpr BlockId kBlock = 2;

GuardBook book_of(GuardRule rule, std::set<WorkerId> liars = {}) {
  GuardBook book({.rule = rule, .liars = std::move(liars), .workers = 4});
  for (Step step = 0; step < 2; ++step) {
    for (WorkerId worker = 0; worker < 4; ++worker)
      book.note(kBlock, step, worker, 1.0 + 0.1 * worker);
  }
  return book;
}

TEST(GuardBook, KnowsNothingBeforeThereAreVotes) {
  const GuardBook book = book_of(GuardRule::kRefuse);
  EXPECT_FALSE(book.may_be_outlier(kBlock, 1, 1e9)) << "each has one length then";
  EXPECT_TRUE(book.may_be_outlier(kBlock, 2, 1e9));
  EXPECT_FALSE(book.may_be_outlier(kBlock + 1, 2, 1e9)) << "another block";
}

TEST(GuardBook, LeavesRoomForWhatTheMediansMaySay) {
  const GuardBook book = book_of(GuardRule::kRefuse);
  EXPECT_FALSE(book.may_be_outlier(kBlock, 2, -2.0));
  EXPECT_TRUE(book.may_be_outlier(kBlock, 2, -10.0));
  EXPECT_FALSE(book.must_be_outlier(kBlock, 2, -10.0));
  EXPECT_TRUE(book.must_be_outlier(kBlock, 2, -50.0));
}

TEST(GuardBook, CountsNoLongerThanHonestWorkersWere) {
  const GuardBook book = book_of(GuardRule::kNorm, {3});
  const Range counted = book.counted(kBlock, 2, -50.0);
  EXPECT_DOUBLE_EQ(counted.low, -1.2);
  EXPECT_DOUBLE_EQ(counted.high, -1.0);
  const Range whole = book.counted(kBlock, 2, 2.0);
  EXPECT_DOUBLE_EQ(whole.low, 2.0);
  EXPECT_DOUBLE_EQ(whole.high, 2.0);
}

TEST(GuardBook, ForgetsWhatWasTakenBack) {
  GuardBook book = book_of(GuardRule::kRefuse);
  book.restart(1);
  EXPECT_FALSE(book.may_be_outlier(kBlock, 2, 1e9));
}

TEST(GuardBook, IsSureOfNothingWhenTooManyWereLost) {
  GuardBook book = book_of(GuardRule::kRefuse);
  book.on_lost(0);
  EXPECT_TRUE(book.must_be_outlier(kBlock, 2, 50.0));
  book.on_lost(1);
  EXPECT_FALSE(book.must_be_outlier(kBlock, 2, 50.0));
}

// The guard itself, asked about the same lengths, is never outside of what the book allows.
TEST(GuardBook, HoldsForTheGuardOverRandomLengths) {
  constexpr uint32_t kWorkers = 5;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    uint64_t draws = 0;
    const auto between = [&](double low, double high) {
      return low + unit_interval(draw({seed, draws++})) * (high - low);
    };
    NormGuard guard(kWorkers, kGuardFactor);
    GuardBook book({.rule = GuardRule::kRefuse, .liars = {4}, .workers = kWorkers});
    const Membership members(kWorkers);
    for (Step step = 0; step < 12; ++step) {
      std::vector<double> lengths;
      for (WorkerId worker = 0; worker < kWorkers; ++worker) {
        const double length = between(0.1, 3.0) * (worker == 4 ? 1000.0 : 1.0);
        lengths.push_back(length);
        const bool refused = length > guard.bound().most;
        EXPECT_TRUE(!refused || book.may_be_outlier(kBlock, step, length)) << length;
        EXPECT_TRUE(refused || !book.must_be_outlier(kBlock, step, length)) << length;
      }
      for (WorkerId worker = 0; worker < kWorkers; ++worker) {
        guard.note(worker, lengths[worker] * lengths[worker], 1);
        book.note(kBlock, step, worker, lengths[worker]);
      }
      guard.learn(members);
    }
  }
}

}  // namespace
}  // namespace drover

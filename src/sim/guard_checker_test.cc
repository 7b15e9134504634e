// The checker only makes statements that hold for all possible medians.
#include "sim/guard_checker.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random_draw.h"
#include "shard/norm_guard.h"

namespace drover {
namespace {

constexpr BlockId kBlock = 2;

GuardChecker book_of(GuardRule rule, std::set<WorkerId> byzantine_workers = {}) {
  GuardChecker book(
      {.rule = rule, .byzantine_workers = std::move(byzantine_workers), .workers = 4});
  for (Step step = 0; step < 2; ++step) {
    for (WorkerId worker = 0; worker < 4; ++worker)
      book.note(kBlock, step, worker, 1.0 + 0.1 * worker);
  }
  return book;
}

TEST(GuardChecker, MakesNoStatementBeforeThereAreVoters) {
  const GuardChecker book = book_of(GuardRule::kRefuse);
  EXPECT_FALSE(book.may_be_outlier(kBlock, 1, 1e9)) << "each worker has only one norm then";
  EXPECT_TRUE(book.may_be_outlier(kBlock, 2, 1e9));
  EXPECT_FALSE(book.may_be_outlier(kBlock + 1, 2, 1e9)) << "another block";
}

TEST(GuardChecker, AllowsForAllPossibleMedians) {
  const GuardChecker book = book_of(GuardRule::kRefuse);
  EXPECT_FALSE(book.may_be_outlier(kBlock, 2, -2.0));
  EXPECT_TRUE(book.may_be_outlier(kBlock, 2, -10.0));
  EXPECT_FALSE(book.must_be_outlier(kBlock, 2, -10.0));
  EXPECT_TRUE(book.must_be_outlier(kBlock, 2, -50.0));
}

TEST(GuardChecker, BoundsClippedGradientsByTheNormsOfHonestWorkers) {
  const GuardChecker book = book_of(GuardRule::kNorm, {3});
  const Range counted = book.counted(kBlock, 2, -50.0);
  EXPECT_DOUBLE_EQ(counted.low, -1.2);
  EXPECT_DOUBLE_EQ(counted.high, -1.0);
  const Range whole = book.counted(kBlock, 2, 2.0);
  EXPECT_DOUBLE_EQ(whole.low, 2.0);
  EXPECT_DOUBLE_EQ(whole.high, 2.0);
}

TEST(GuardChecker, ARestartDiscardsLaterNorms) {
  GuardChecker book = book_of(GuardRule::kRefuse);
  book.restart(1);
  EXPECT_FALSE(book.may_be_outlier(kBlock, 2, 1e9));
}

TEST(GuardChecker, MakesNoStatementWhenTooManyWorkersWereLost) {
  GuardChecker book = book_of(GuardRule::kRefuse);
  book.on_lost(0);
  EXPECT_TRUE(book.must_be_outlier(kBlock, 2, 50.0));
  book.on_lost(1);
  EXPECT_FALSE(book.must_be_outlier(kBlock, 2, 50.0));
}

// For the same norms, the guard's results are always within the bounds of the checker.
TEST(GuardChecker, HoldsForTheGuardOverRandomNorms) {
  constexpr uint32_t kWorkers = 5;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    uint64_t draws = 0;
    const auto between = [&](double low, double high) {
      return low + unit_interval(draw({seed, draws++})) * (high - low);
    };
    NormGuard guard(kWorkers, kGuardFactor);
    GuardChecker book({.rule = GuardRule::kRefuse, .byzantine_workers = {4}, .workers = kWorkers});
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

// The guard accepts honest gradients, also if all norms change together, and catches single
// outliers.
#include "shard/norm_guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/learning_rules.h"
#include "core/random_draw.h"

namespace drover {
namespace {

constexpr uint32_t kSamples = 32;

// Steps in which all workers push. Norms are log-normal: a level times e to the power of a normal
// number.
class GuardTest : public ::testing::Test {
 protected:
  void start(uint32_t workers, double factor = kGuardFactor) {
    members_ = Membership(workers);
    guard_.emplace(workers, factor);
  }
  double length(uint64_t seed, Step step, WorkerId worker, double deviation) const {
    // Two uniform numbers make a normal one.
    const double a = unit_interval(draw({seed, step, worker, 1}));
    const double b = unit_interval(draw({seed, step, worker, 2}));
    const double normal = std::sqrt(-2.0 * std::log(1.0 - a)) * std::cos(6.283185307179586 * b);
    return std::exp(deviation * normal);
  }
  bool push(WorkerId worker, double length) {
    const bool fits = length <= guard_->bound().most;
    guard_->note(worker, length * length, kSamples);
    return fits;
  }
  void close() { guard_->learn(members_); }
  // One step with these norms.
  void step(const std::function<double(WorkerId)>& length) {
    for (WorkerId worker = 0; worker < members_.size(); ++worker) push(worker, length(worker));
    close();
  }

  Membership members_;
  std::optional<NormGuard> guard_;
};

TEST_F(GuardTest, HasNoBoundBeforeEnoughNormsAreKnown) {
  start(3);
  EXPECT_TRUE(push(0, 1e9));
  step([](WorkerId) { return 1.0; });
  EXPECT_EQ(guard_->bound().typical, 0.0);
  step([](WorkerId) { return 1.0; });
  EXPECT_EQ(guard_->bound().typical, 1.0);
  EXPECT_FALSE(push(0, 3.0));
  EXPECT_TRUE(push(0, 2.7)) << "equal norms may change";
}

TEST_F(GuardTest, TwoVotersAreTooFewForABound) {
  start(2);
  for (int i = 0; i < 20; ++i) step([](WorkerId) { return 1.0; });
  EXPECT_TRUE(push(0, 1e9));
}

// Fewer than one in a thousand honest gradients is an outlier, for any typical spread of norms.
TEST_F(GuardTest, HonestGradientsPass) {
  for (const uint32_t workers : {3u, 4u, 8u, 32u}) {
    for (const double deviation : {0.02, 0.1, 0.3, 0.6}) {
      SCOPED_TRACE(std::to_string(workers) + " workers, deviation " + std::to_string(deviation));
      uint64_t pushed = 0;
      uint64_t refused = 0;
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        start(workers);
        for (Step step = 0; step < 30'000 / workers; ++step) {
          // Norms get smaller during training.
          const double level = std::exp(-0.01 * static_cast<double>(step));
          for (WorkerId worker = 0; worker < workers; ++worker, ++pushed)
            refused += push(worker, level * length(seed, step, worker, deviation)) ? 0 : 1;
          close();
        }
      }
      EXPECT_LT(static_cast<double>(refused), 1e-3 * static_cast<double>(pushed));
    }
  }
}

TEST_F(GuardTest, ANormAHundredTimesTooLargeIsAlwaysCaught) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    start(4);
    for (Step step = 0; step < 100; ++step) {
      for (WorkerId worker = 0; worker < 3; ++worker) push(worker, length(seed, step, worker, 0.3));
      const bool passed = push(3, 100.0 * length(seed, step, 3, 0.3));
      if (step >= NormGuard::kNormsMin) {
        ASSERT_FALSE(passed) << "step " << step;
      }
      close();
    }
  }
}

// Whatever one worker sends, the typical norm and the bound stay within those of the honest
// workers.
TEST_F(GuardTest, OneByzantineWorkerMovesTheBoundOnlyWithinHonestNorms) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const double fault : {0.0, 1e-6, 0.1, 2.0, 10.0, 1e6}) {
      SCOPED_TRACE(std::to_string(seed) + " " + std::to_string(fault));
      start(5);
      double shortest = 1e30;
      double longest = 0.0;
      for (Step step = 0; step < 40; ++step) {
        for (WorkerId worker = 0; worker < 4; ++worker) {
          const double honest = length(seed, step, worker, 0.2);
          shortest = std::min(shortest, honest);
          longest = std::max(longest, honest);
          push(worker, honest);
        }
        push(4, fault);
        close();
        if (step < NormGuard::kNormsMin) continue;
        EXPECT_GE(guard_->bound().typical, 0.999 * shortest);
        EXPECT_LE(guard_->bound().typical, 1.001 * longest);
        EXPECT_LT(guard_->bound().most, 20.0) << "a deviation of about a fifth";
      }
    }
  }
}

// When the norms of all workers suddenly grow, the bound follows: after five gradients of each
// worker there are no outliers.
TEST_F(GuardTest, AdaptsToAChangeOfAllWorkers) {
  for (const double jump : {10.0, 1e4, 1e-4}) {
    SCOPED_TRACE(jump);
    start(6);
    for (Step now = 0; now < 50; ++now)
      step([&](WorkerId worker) { return length(7, now, worker, 0.2); });
    for (Step now = 50; now < 55; ++now)
      step([&](WorkerId worker) { return jump * length(7, now, worker, 0.2); });
    for (WorkerId worker = 0; worker < 6; ++worker)
      EXPECT_TRUE(push(worker, jump * length(7, 55, worker, 0.2))) << worker;
  }
}

TEST_F(GuardTest, AWorkerThatPushesOftenHasOneVote) {
  start(4);
  for (Step step = 0; step < 60; ++step) {
    push(3, 1e3);
    if (step % 10 == 0) {
      for (WorkerId worker = 0; worker < 3; ++worker) push(worker, 1.0);
    }
    close();
  }
  EXPECT_EQ(guard_->bound().typical, 1.0);
}

TEST_F(GuardTest, LostOrSilentWorkersHaveNoVote) {
  start(6);
  for (int i = 0; i < 10; ++i) step([](WorkerId worker) { return worker < 3 ? 1.0 : 50.0; });
  EXPECT_EQ(guard_->bound().typical, 1.0);
  members_.remove(0);
  close();
  EXPECT_EQ(guard_->bound().typical, 50.0);
  members_.add(0);
  close();
  EXPECT_EQ(guard_->bound().typical, 1.0);
  guard_->forget(0);
  close();
  EXPECT_EQ(guard_->bound().typical, 50.0) << "a new incarnation has no history";
  for (uint32_t i = 0; i < NormGuard::kStepsFresh; ++i) close();
  EXPECT_EQ(guard_->bound().typical, 0.0) << "no worker has pushed for kStepsFresh steps";
}

TEST_F(GuardTest, ZeroGradientsHaveNoVote) {
  start(3);
  for (int i = 0; i < 10; ++i) step([](WorkerId) { return 1.0; });
  for (int i = 0; i < 20; ++i) step([](WorkerId) { return 0.0; });
  EXPECT_EQ(guard_->bound().typical, 1.0);
}

TEST_F(GuardTest, BoundsSamples) {
  start(4);
  for (int i = 0; i < 3; ++i) {
    for (WorkerId worker = 0; worker < 4; ++worker)
      guard_->note(worker, 1.0, worker == 3 ? 1u << 24 : kSamples);
    close();
  }
  EXPECT_EQ(guard_->bound().typical_samples, kSamples);
  EXPECT_EQ(guard_->bound().most_samples, 4.0 * kSamples);
}

TEST_F(GuardTest, RestoresItsState) {
  start(5);
  for (Step now = 0; now < 13; ++now)
    step([&](WorkerId worker) { return length(3, now, worker, 0.3); });
  NormGuard other(5, kGuardFactor);
  other.restore(guard_->save(), members_);
  EXPECT_EQ(other.save(), guard_->save());
  EXPECT_EQ(other.bound().most, guard_->bound().most);
  EXPECT_EQ(other.bound().typical, guard_->bound().typical);
}

TEST_F(GuardTest, IgnoresInvalidState) {
  start(3);
  for (Step now = 0; now < 9; ++now) step([](WorkerId) { return 1.0; });
  const std::vector<float> good = guard_->save();
  for (size_t i = 0; i < good.size(); ++i) {
    for (const float bad : {-1.0F, 1e30F, std::nanf(""), INFINITY}) {
      std::vector<float> broken = good;
      broken[i] = bad;
      NormGuard other(3, kGuardFactor);
      other.restore(broken, members_);
      other.learn(members_);
    }
  }
  NormGuard other(3, kGuardFactor);
  other.restore(std::span(good).first(5), members_);
  EXPECT_EQ(other.bound().typical, 0.0);
}

}  // namespace
}  // namespace drover

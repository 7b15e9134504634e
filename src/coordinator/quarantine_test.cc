#include "coordinator/quarantine.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(Quarantine, AFewLossesCauseNoBackoff) {
  Quarantine quarantine;
  TimePoint now{};
  for (uint32_t loss = 0; loss < Quarantine::kForgiven; ++loss) {
    quarantine.on_joined(3, "worker 3", now);
    now += 1s;
    EXPECT_EQ(quarantine.on_lost(3, now).wait, Duration::zero());
    EXPECT_EQ(quarantine.backoff("worker 3", now).wait, Duration::zero());
  }
}

TEST(Quarantine, EachFurtherLossDoublesTheBackoff) {
  Quarantine quarantine;
  TimePoint now{};
  Duration expected = Quarantine::kFirst;
  for (uint32_t loss = 1; loss < 40; ++loss) {
    EXPECT_EQ(quarantine.backoff("worker 3", now).wait, Duration::zero());
    quarantine.on_joined(3, "worker 3", now);
    now += 1s;
    const Duration wait = quarantine.on_lost(3, now).wait;
    if (loss <= Quarantine::kForgiven) continue;
    EXPECT_EQ(wait, expected) << loss;
    EXPECT_EQ(quarantine.backoff("worker 3", now).wait, expected);
    EXPECT_EQ(quarantine.backoff("worker 3", now + expected / 2).wait, expected - expected / 2);
    now += expected;
    expected = std::min<Duration>(2 * expected, Quarantine::kLongest);
  }
}

TEST(Quarantine, AStayClearsTheRecord) {
  Quarantine quarantine;
  TimePoint now{};
  for (int loss = 0; loss < 5; ++loss) {
    quarantine.on_joined(3, "worker 3", now);
    quarantine.on_lost(3, now);
  }
  EXPECT_GT(quarantine.backoff("worker 3", now).wait, Duration::zero());
  quarantine.on_joined(3, "worker 3", now);
  now += Quarantine::kSettled;
  EXPECT_EQ(quarantine.on_lost(3, now).wait, Duration::zero());
  EXPECT_EQ(quarantine.backoff("worker 3", now).losses, 1u);
}

TEST(Quarantine, AccountsAreIndependent) {
  Quarantine quarantine;
  for (int loss = 0; loss < 9; ++loss) {
    quarantine.on_joined(3, "worker 3", {});
    quarantine.on_lost(3, {});
  }
  EXPECT_GT(quarantine.backoff("worker 3", {}).wait, Duration::zero());
  EXPECT_EQ(quarantine.backoff("worker 4", {}).wait, Duration::zero());
}

TEST(Quarantine, WorkersOfAHostThatAreLostTogetherCountOnce) {
  Quarantine quarantine;
  TimePoint now{};
  for (uint32_t loss = 1; loss <= Quarantine::kForgiven + 1; ++loss) {
    EXPECT_EQ(quarantine.backoff("host a", now).wait, Duration::zero());
    for (WorkerId worker = 10; worker < 18; ++worker) quarantine.on_joined(worker, "host a", now);
    now += 1s;
    for (WorkerId worker = 10; worker < 18; ++worker)
      EXPECT_EQ(quarantine.on_lost(worker, now).losses, loss);
  }
  EXPECT_EQ(quarantine.backoff("host a", now).wait, Quarantine::kFirst);
  EXPECT_EQ(quarantine.backoff("host b", now).wait, Duration::zero());
}

TEST(Quarantine, AWorkerThatLeftHasNoRecord) {
  Quarantine quarantine;
  for (int time = 0; time < 9; ++time) quarantine.on_joined(3, "worker 3", {});
  EXPECT_EQ(quarantine.backoff("worker 3", {}).losses, 0u);
}

}  // namespace
}  // namespace drover

#include "server/quarantine.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(Quarantine, AFewLossesAreForgiven) {
  Quarantine quarantine;
  TimePoint now{};
  for (uint32_t loss = 0; loss < Quarantine::kForgiven; ++loss) {
    quarantine.on_joined(3, now);
    now += 1s;
    EXPECT_EQ(quarantine.on_lost(3, now), Duration::zero());
    EXPECT_EQ(quarantine.wait(3, now), Duration::zero());
  }
}

TEST(Quarantine, WhoFlapsWaitsTwiceAsLongEachTimeAndIsLetBackIn) {
  Quarantine quarantine;
  TimePoint now{};
  Duration expected = Quarantine::kFirst;
  for (uint32_t loss = 1; loss < 40; ++loss) {
    EXPECT_EQ(quarantine.wait(3, now), Duration::zero());
    quarantine.on_joined(3, now);
    now += 1s;
    const Duration kept_out = quarantine.on_lost(3, now);
    if (loss <= Quarantine::kForgiven) continue;
    EXPECT_EQ(kept_out, expected) << loss;
    EXPECT_EQ(quarantine.wait(3, now), expected);
    EXPECT_EQ(quarantine.wait(3, now + expected / 2), expected - expected / 2);
    now += expected;
    expected = std::min<Duration>(2 * expected, Quarantine::kLongest);
  }
}

TEST(Quarantine, AStayClearsTheRecord) {
  Quarantine quarantine;
  TimePoint now{};
  for (int loss = 0; loss < 5; ++loss) {
    quarantine.on_joined(3, now);
    quarantine.on_lost(3, now);
  }
  EXPECT_GT(quarantine.wait(3, now), Duration::zero());
  quarantine.on_joined(3, now);
  now += Quarantine::kSettled;
  EXPECT_EQ(quarantine.on_lost(3, now), Duration::zero());
  EXPECT_EQ(quarantine.losses(3), 1u);
}

TEST(Quarantine, OneDoesNotPayForAnother) {
  Quarantine quarantine;
  for (int loss = 0; loss < 9; ++loss) {
    quarantine.on_joined(3, {});
    quarantine.on_lost(3, {});
  }
  EXPECT_GT(quarantine.wait(3, {}), Duration::zero());
  EXPECT_EQ(quarantine.wait(4, {}), Duration::zero());
}

}  // namespace
}  // namespace drover

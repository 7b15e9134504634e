#include "policy/rule_race.h"

#include <gtest/gtest.h>

#include "core/random_draw.h"

namespace drover {
namespace {

double uniform(uint64_t seed, uint64_t step, uint64_t use) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), step, use}));
}

TEST(RuleRace, FollowsARuleThatIsBetter) {
  RuleRace race(2, 0);
  for (uint64_t step = 0; step < 40; ++step) race.add({{8.0, 1.0}, {7.5, 0.8}});
  EXPECT_EQ(race.leader(), 1U);
  for (uint64_t step = 0; step < 100; ++step) race.add({{8.0, 1.0}, {7.5, 1.2}});
  EXPECT_EQ(race.leader(), 0U) << "it leaves a rule that loses";
}

TEST(RuleRace, StaysWhereTheDifferenceIsSmall) {
  RuleRace race(2, 0);
  for (uint64_t step = 0; step < 300; ++step) race.add({{8.0, 1.0}, {8.0, 0.999}});
  EXPECT_EQ(race.leader(), 0U);
}

// Rules that are equally good in the mean: noise alone changes the leader rarely.
TEST(RuleRace, RarelyFollowsNoise) {
  size_t changes = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    RuleRace race(2, 0);
    size_t leader = 0;
    for (uint64_t step = 0; step < 300; ++step) {
      race.add(
          {{8.0, 0.9 + 0.2 * uniform(seed, step, 1)}, {8.0, 0.9 + 0.2 * uniform(seed, step, 2)}});
      changes += race.leader() != leader ? 1 : 0;
      leader = race.leader();
    }
  }
  EXPECT_LT(changes, 150U) << "of 3000 steps";
}

// The sum over time counts: a rule that is a little worse in most steps and much better in long
// ones wins.
TEST(RuleRace, CountsLongStepsByTheirLength) {
  RuleRace race(2, 0);
  for (uint64_t step = 0; step < 200; ++step) {
    const bool stall = step % 10 == 0;
    race.add({{8.0, stall ? 20.0 : 1.0}, {stall ? 7.0 : 7.9, 1.0}});
  }
  EXPECT_EQ(race.leader(), 1U);
}

}  // namespace
}  // namespace drover

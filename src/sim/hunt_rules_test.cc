#include "sim/hunt_rules.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

HuntCase plain() {
  HuntCase hunt;
  hunt.policy = "sync";
  hunt.settings.coordinator.workers = 4;
  hunt.settings.coordinator.shards = 2;
  hunt.settings.coordinator.steps = 5;
  hunt.settings.coordinator.learning.deterministic = true;
  return hunt;
}

TEST(HuntRules, AStepMayTakeLongerOverSlowLinks) {
  HuntCase hunt = plain();
  const Duration fast = rules_for(hunt).limits.step;
  hunt.settings.scenario.links = {{{}, {.bytes_per_second = 1e4}}};
  EXPECT_GT(rules_for(hunt).limits.step, fast + 10s);
}

TEST(HuntRules, AStepMayTakeLongerIfTheRunCanRestart) {
  HuntCase hunt = plain();
  const Duration before = rules_for(hunt).limits.step;
  hunt.settings.coordinator.recovers = true;
  EXPECT_GT(rules_for(hunt).limits.step, before);
}

TEST(HuntRules, TimesAreExactIfAllMessagesTakeEquallyLong) {
  HuntCase hunt = plain();
  hunt.settings.scenario.links = {{{}, {.latency = 5ms}}};
  EXPECT_TRUE(rules_for(hunt).exact_times);
  hunt.settings.scenario.links.front().law.jitter = 1ms;
  EXPECT_FALSE(rules_for(hunt).exact_times);
}

TEST(HuntRules, PlainSgdIsCheckedWithoutMomentum) {
  HuntCase hunt = plain();
  hunt.settings.coordinator.learning.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0.9};
  EXPECT_EQ(rules_for(hunt).momentum, 0.0);
  hunt.settings.coordinator.learning.optimizer.kind = OptimizerKind::kMomentum;
  EXPECT_EQ(rules_for(hunt).momentum, 0.9);
}

TEST(HuntRules, ACaseWithoutMissedGradientsIsOrderIndependent) {
  EXPECT_TRUE(is_order_independent(plain()));
  HuntCase deaths = plain();
  deaths.settings.scenario.deaths.push_back({});
  EXPECT_FALSE(is_order_independent(deaths));
  HuntCase other_policy = plain();
  other_policy.policy = "static:0.5";
  EXPECT_FALSE(is_order_independent(other_policy));
}

TEST(HuntRules, AnInterruptedCaseIsOrderIndependentIfTheRunRecovers) {
  HuntCase hunt = plain();
  EXPECT_FALSE(is_interrupted(hunt));
  hunt.settings.scenario.server_deaths.push_back({});
  EXPECT_TRUE(is_interrupted(hunt));
  EXPECT_FALSE(is_order_independent(hunt));
  hunt.settings.coordinator.recovers = true;
  EXPECT_TRUE(is_order_independent(hunt));
}

}  // namespace
}  // namespace drover

#include "sim/hunt_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace drover {
namespace {

TEST(HuntCase, IsAFunctionOfItsSeed) {
  EXPECT_EQ(make_hunt_case(3).description, make_hunt_case(3).description);
  EXPECT_NE(make_hunt_case(3).description, make_hunt_case(4).description);
}

bool dies(const HuntCase& hunt, Role role) {
  const auto& deaths = hunt.settings.scenario.server_deaths;
  return std::any_of(deaths.begin(), deaths.end(),
                     [&](const ServerDeath& death) { return death.role == role; });
}

// Each feature must be drawn often enough to be tested: at least `least` times in kCases cases.
struct Feature {
  std::string name;
  int least;  // of kCases
  std::function<bool(const HuntCase&)> is_in;
};
constexpr uint64_t kCases = 2'000;

std::vector<Feature> features() {
  const auto job = [](const HuntCase& hunt) -> const CoordinatorSettings& {
    return hunt.settings.coordinator;
  };
  const auto world = [](const HuntCase& hunt) -> const Scenario& { return hunt.settings.scenario; };
  return {
      {"recovery", 600, [=](auto& hunt) { return job(hunt).recovers; }},
      {"the coordinator dies and is restarted", 300,
       [=](auto& hunt) { return job(hunt).recovers && dies(hunt, Role::kCoordinator); }},
      {"a shard dies and is restarted", 250,
       [=](auto& hunt) { return job(hunt).recovers && dies(hunt, Role::kShard); }},
      {"a shard dies in a run that does not recover", 30,
       [=](auto& hunt) { return !job(hunt).recovers && dies(hunt, Role::kShard); }},
      {"workers and servers die", 300,
       [=](auto& hunt) {
         return !world(hunt).deaths.empty() && !world(hunt).server_deaths.empty();
       }},
      {"a standby takes over", 50,
       [=](auto& hunt) { return job(hunt).standby && dies(hunt, Role::kShard); }},
      {"a standby dies", 40, [=](auto& hunt) { return dies(hunt, Role::kStandby); }},
      {"checkpoints", 500, [=](auto& hunt) { return job(hunt).checkpoint_every > 0; }},
      {"checkpoints that cannot be written", 80,
       [=](auto& hunt) {
         return job(hunt).checkpoint_every > 0 && world(hunt).disk.failures > 0.0;
       }},
      {"long gradients are clipped", 40,
       [=](auto& hunt) { return job(hunt).learning.guard == GuardRule::kNorm; }},
      {"long gradients are refused", 40,
       [=](auto& hunt) { return job(hunt).learning.guard == GuardRule::kRefuse; }},
      {"a guard in a run that recovers", 25,
       [=](auto& hunt) {
         return job(hunt).learning.guard != GuardRule::kOff && job(hunt).recovers;
       }},
      {"batches are balanced", 100, [=](auto& hunt) { return job(hunt).balance.has_value(); }},
      {"samples are dealt, and workers die", 70,
       [=](auto& hunt) { return job(hunt).balance && !world(hunt).deaths.empty(); }},
      {"samples are dealt to steady workers", 25,
       [](auto& hunt) { return hunt.steady_speeds != nullptr; }},
      {"scripts", 200, [](auto& hunt) { return hunt.settings.scripts.has_value(); }},
      {"scripts leave", 60, [=](auto& hunt) { return !world(hunt).leaves.empty(); }},
      {"scripts pull ahead", 50,
       [](auto& hunt) { return hunt.settings.scripts && hunt.settings.scripts->pulls_ahead; }},
      {"scripts in a run that recovers", 60,
       [=](auto& hunt) { return hunt.settings.scripts && job(hunt).recovers; }},
      {"momentum", 300,
       [=](auto& hunt) { return job(hunt).learning.optimizer.kind == OptimizerKind::kMomentum; }},
      {"momentum in a run that recovers", 80,
       [=](auto& hunt) {
         return job(hunt).learning.optimizer.kind == OptimizerKind::kMomentum && job(hunt).recovers;
       }},
      {"a protocol that is broken", 150,
       [=](auto& hunt) { return !world(hunt).repeated_closings.empty(); }},
  };
}

TEST(HuntCases, HaveEachFeatureOftenEnough) {
  std::vector<HuntCase> cases;
  for (uint64_t seed = 1; seed <= kCases; ++seed) cases.push_back(make_hunt_case(seed));
  for (const Feature& feature : features())
    EXPECT_GE(std::count_if(cases.begin(), cases.end(), feature.is_in), feature.least)
        << feature.name;
}

}  // namespace
}  // namespace drover

#include "policy/decider.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "policy/simple.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

class SayPolicy : public UnlearningPolicy {
 public:
  explicit SayPolicy(Choice choice) : choice_(std::move(choice)) {}
  Choice decide(const Situation&) override { return choice_; }

 private:
  const Choice choice_;
};

std::vector<WorkerId> workers(size_t count) {
  std::vector<WorkerId> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

Choice decide(const Choice& said, const DecisionLimits& limits, size_t alive) {
  Decider decider(std::make_unique<SayPolicy>(said), limits);
  return decider.decide({0, workers(alive)});
}

TEST(Decider, LeavesAGoodChoiceAlone) {
  const Choice choice =
      decide({.cutoff = 5, .time_limit = 2.0, .at_least = 3, .reason = "so"}, {}, 8);
  EXPECT_EQ(choice.cutoff, 5u);
  EXPECT_EQ(choice.time_limit, 2.0);
  EXPECT_EQ(choice.at_least, 3u);
  EXPECT_EQ(choice.reason, "so");
}

// A fixed count larger than the pool must never hang: 60 wanted, 27 of 64 gone.
TEST(Decider, NeverWaitsForMoreThanAreAlive) {
  Decider decider(std::make_unique<StaticCountPolicy>(60), {});
  EXPECT_EQ(decider.decide({0, workers(64)}).cutoff, 60u);
  const Choice choice = decider.decide({1, workers(37)});
  EXPECT_EQ(choice.cutoff, 37u);
  EXPECT_EQ(choice.reason, "static: 60 workers; clamped to 37 workers alive");
  EXPECT_EQ(decider.decide({2, workers(1)}).reason,
            "static: 60 workers; clamped to 1 worker alive");
}

TEST(Decider, HasAFloor) {
  const Choice choice = decide({.cutoff = 1, .reason = "so"}, {.at_least = 3}, 8);
  EXPECT_EQ(choice.cutoff, 3u);
  EXPECT_EQ(choice.at_least, 3u);
  EXPECT_EQ(choice.reason, "so; raised to the floor of 3");
}

TEST(Decider, TheFloorIsOfThoseAlive) {
  const Choice choice = decide({.cutoff = 1, .reason = "so"}, {.at_least = 10}, 2);
  EXPECT_EQ(choice.cutoff, 2u);
  EXPECT_EQ(choice.at_least, 2u);
  EXPECT_EQ(choice.reason, "so; raised to the floor of 10, as far as alive: 2 workers");
}

TEST(Decider, HasACeilingOnWaiting) {
  const Choice choice = decide({.cutoff = 5, .reason = "so"}, {.max_wait = 10.0}, 8);
  EXPECT_EQ(choice.time_limit, 10.0);
  EXPECT_EQ(choice.reason, "so; waits at most 10");
  EXPECT_EQ(decide({.cutoff = 5, .time_limit = 2.0, .reason = "so"}, {.max_wait = 10.0}, 8).reason,
            "so");
}

TEST(Decider, TheFloorHoldsBeyondTheCeiling) {
  const Choice choice = decide({.cutoff = 5, .reason = "so"}, {.at_least = 3, .max_wait = 10.0}, 8);
  EXPECT_EQ(choice.cutoff, 5u);
  EXPECT_EQ(choice.at_least, 3u);
  EXPECT_EQ(choice.reason, "so; waits at most 10; for the first 3 in any case");
}

TEST(Decider, MakesSenseOfNonsense) {
  for (const Choice& said : {Choice{.cutoff = 0, .at_least = 0}, Choice{.cutoff = 0, .at_least = 9},
                             Choice{.cutoff = 4000000000u, .at_least = 4000000000u}}) {
    for (const uint32_t floor : {0u, 1u, 5u, 4000000000u}) {
      for (const uint32_t alive : {1u, 4u}) {
        const Choice choice = decide(said, {.at_least = floor}, alive);
        EXPECT_GE(choice.at_least, 1u);
        EXPECT_LE(choice.at_least, choice.cutoff);
        EXPECT_LE(choice.cutoff, alive);
      }
    }
  }
}

// --- Inclusion. Worker 0 takes 5, the others 1, and the policy waits for all but one.

std::vector<Walked> walk_without_the_slow(double min_inclusion, size_t steps,
                                          double max_wait = 100.0) {
  Trace trace(steps, std::vector(4, 1.0));
  for (auto& step : trace) step[0] = 5.0;
  Decider decider(std::make_unique<StaticCountPolicy>(3),
                  {.max_wait = max_wait, .min_inclusion = min_inclusion});
  return walk(decider, trace, 0.0);
}

TEST(Decider, NobodyIsLeftOutForEver) {
  const auto walked = walk_without_the_slow(0.25, 8);
  std::vector<uint32_t> cutoffs;
  for (const Walked& step : walked) cutoffs.push_back(step.choice.cutoff);
  EXPECT_EQ(cutoffs, (std::vector<uint32_t>{3, 3, 3, 4, 3, 3, 3, 4}));
  EXPECT_EQ(
      walked[3].choice.reason,
      "waits for all 4 workers, since worker 0 was left out of 3 steps in a row; waits at most "
      "100");
}

TEST(Decider, EverybodyIsPartOfTheShareAskedFor) {
  for (const double share : {0.05, 0.1, 0.3, 0.5, 0.6, 0.75, 0.9, 1.0}) {
    SCOPED_TRACE(share);
    size_t steps = 0;
    size_t included = 0;
    for (const Walked& step : walk_without_the_slow(share, 400)) {
      ++steps;
      included += step.close.contributors == 4 ? 1 : 0;
      EXPECT_GE(static_cast<double>(included) + 1.0 + 1e-6, share * static_cast<double>(steps));
    }
    // Nor much more often: left out n times between two, or waited for n times between two.
    const double n = std::ceil(share > 0.5 ? share / (1.0 - share + 1e-9) - 1e-6 : 0.0);
    const double often = share > 0.5 ? n / (n + 1.0) : 1.0 / std::floor(1.0 / share + 1e-9);
    EXPECT_LE(static_cast<double>(included) / 400.0, often + 0.01);
  }
}

TEST(Decider, WithoutTheLimitWhoeverIsSlowStaysOut) {
  for (const Walked& step : walk_without_the_slow(0.0, 50)) EXPECT_EQ(step.choice.cutoff, 3u);
}

TEST(Decider, WaitsInVainOnceInAWhileOnly) {
  // The ceiling is before worker 0 comes: it has its chance in every fourth step, not in all.
  const auto walked = walk_without_the_slow(0.25, 40, 2.0);
  size_t chances = 0;
  for (const Walked& step : walked) chances += step.choice.cutoff == 4 ? 1 : 0;
  EXPECT_EQ(chances, 10u);
}

TEST(Decider, WaitsForNobodyWhoIsGone) {
  Decider decider(std::make_unique<StaticCountPolicy>(2), {.min_inclusion = 0.5});
  const auto all = workers(3);
  decider.decide({0, all});
  decider.learn({0, {1.0, 1.0, 1.0}, {Known::kArrived, Known::kArrived, Known::kLonger}, 1.0, 2});
  EXPECT_EQ(decider.decide({1, std::span(all).first(2)}).reason, "static: all 2 workers alive");
  EXPECT_EQ(decider.decide({1, all}).reason,
            "waits for all 3 workers, since worker 2 was left out of 1 step in a row");
}

}  // namespace
}  // namespace drover::testing_support

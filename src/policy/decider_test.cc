#include "policy/decider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/test_text.h"
#include "policy/simple.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Not;

class ConstantPolicy : public UnlearningPolicy {
 public:
  explicit ConstantPolicy(Choice choice) : choice_(std::move(choice)) {}
  Choice decide(const Situation&) override { return choice_; }

 private:
  const Choice choice_;
};

std::vector<WorkerId> workers(size_t count) {
  std::vector<WorkerId> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

Choice decide(const Choice& chosen, const DecisionLimits& limits, size_t alive) {
  Decider decider(std::make_unique<ConstantPolicy>(chosen), limits);
  return decider.decide({0, workers(alive)});
}

TEST(Decider, DoesNotChangeAValidChoice) {
  const Choice choice =
      decide({.cutoff = 5, .time_limit = 2.0, .at_least = 3, .reason = "so"}, {}, 8);
  EXPECT_EQ(choice.cutoff, 5u);
  EXPECT_EQ(choice.time_limit, 2.0);
  EXPECT_EQ(choice.at_least, 3u);
  EXPECT_EQ(choice.reason, "so");
}

// A fixed count must not hang when workers leave: 60 are required, 27 of 64 have left.
TEST(Decider, LimitsTheCutoffToTheWorkersAlive) {
  Decider decider(std::make_unique<StaticCountPolicy>(60), {});
  EXPECT_EQ(decider.decide({0, workers(64)}).cutoff, 60u);
  const Choice choice = decider.decide({1, workers(37)});
  EXPECT_EQ(choice.cutoff, 37u);
  EXPECT_THAT(choice.reason, mentions("static", 60, 37));
  EXPECT_THAT(decider.decide({2, workers(1)}).reason, mentions("static", 60, 1));
}

TEST(Decider, RaisesTheCutoffToTheMinimum) {
  const Choice choice = decide({.cutoff = 1, .reason = "so"}, {.at_least = 3}, 8);
  EXPECT_EQ(choice.cutoff, 3u);
  EXPECT_EQ(choice.at_least, 3u);
  EXPECT_THAT(choice.reason, mentions("so", 3));
}

TEST(Decider, LimitsTheMinimumToTheWorkersAlive) {
  const Choice choice = decide({.cutoff = 1, .reason = "so"}, {.at_least = 10}, 2);
  EXPECT_EQ(choice.cutoff, 2u);
  EXPECT_EQ(choice.at_least, 2u);
  EXPECT_THAT(choice.reason, mentions("so", 10, 2));
}

TEST(Decider, LimitsTheWait) {
  const Choice choice = decide({.cutoff = 5, .reason = "so"}, {.max_wait = 10.0}, 8);
  EXPECT_EQ(choice.time_limit, 10.0);
  EXPECT_THAT(choice.reason, mentions("so", "10 s"));
  EXPECT_EQ(decide({.cutoff = 5, .time_limit = 2.0, .reason = "so"}, {.max_wait = 10.0}, 8).reason,
            "so");
}

TEST(Decider, WaitsForTheMinimumBeyondTheMaximumWait) {
  const Choice choice = decide({.cutoff = 5, .reason = "so"}, {.at_least = 3, .max_wait = 10.0}, 8);
  EXPECT_EQ(choice.cutoff, 5u);
  EXPECT_EQ(choice.at_least, 3u);
  EXPECT_THAT(choice.reason, mentions("so", 10, 3));
}

TEST(Decider, CorrectsInvalidChoices) {
  for (const Choice& chosen :
       {Choice{.cutoff = 0, .at_least = 0}, Choice{.cutoff = 0, .at_least = 9},
        Choice{.cutoff = 4000000000u, .at_least = 4000000000u}}) {
    for (const uint32_t floor : {0u, 1u, 5u, 4000000000u}) {
      for (const uint32_t alive : {1u, 4u}) {
        const Choice choice = decide(chosen, {.at_least = floor}, alive);
        EXPECT_GE(choice.at_least, 1u);
        EXPECT_LE(choice.at_least, choice.cutoff);
        EXPECT_LE(choice.cutoff, alive);
      }
    }
  }
}

// --- Inclusion. Worker 0 takes 5 s, the others 1 s, and the policy waits for all but one.

std::vector<Walked> walk_without_the_slow(double min_inclusion, size_t steps,
                                          double max_wait = 100.0) {
  Trace trace(steps, std::vector(4, 1.0));
  for (auto& step : trace) step[0] = 5.0;
  Decider decider(std::make_unique<StaticCountPolicy>(3),
                  {.max_wait = max_wait, .min_inclusion = min_inclusion});
  return walk(decider, trace, 0.0);
}

TEST(Decider, IncludesASlowWorkerRegularly) {
  const auto walked = walk_without_the_slow(0.25, 8);
  std::vector<uint32_t> cutoffs;
  for (const Walked& step : walked) cutoffs.push_back(step.choice.cutoff);
  EXPECT_EQ(cutoffs, (std::vector<uint32_t>{3, 3, 3, 4, 3, 3, 3, 4}));
  EXPECT_THAT(walked[3].choice.reason, mentions(4, "worker 0", 3, 100));
}

TEST(Decider, IncludesEachWorkerInTheMinimumShare) {
  for (const double share : {0.05, 0.1, 0.3, 0.5, 0.6, 0.75, 0.9, 1.0}) {
    SCOPED_TRACE(share);
    size_t steps = 0;
    size_t included = 0;
    for (const Walked& step : walk_without_the_slow(share, 400)) {
      ++steps;
      included += step.close.contributors == 4 ? 1 : 0;
      EXPECT_GE(static_cast<double>(included) + 1.0 + 1e-6, share * static_cast<double>(steps));
    }
    // Not much more often than required: left out, or included, n times in a row.
    const double n = std::ceil(share > 0.5 ? share / (1.0 - share + 1e-9) - 1e-6 : 0.0);
    const double often = share > 0.5 ? n / (n + 1.0) : 1.0 / std::floor(1.0 / share + 1e-9);
    EXPECT_LE(static_cast<double>(included) / 400.0, often + 0.01);
  }
}

TEST(Decider, LeavesASlowWorkerOutWithoutTheLimit) {
  for (const Walked& step : walk_without_the_slow(0.0, 50)) EXPECT_EQ(step.choice.cutoff, 3u);
}

TEST(Decider, CountsAStepThatWaitedForAllButTimedOut) {
  // The maximum wait ends before worker 0 arrives. Only every fourth step waits for it, not all.
  const auto walked = walk_without_the_slow(0.25, 40, 2.0);
  size_t attempts = 0;
  for (const Walked& step : walked) attempts += step.choice.cutoff == 4 ? 1 : 0;
  EXPECT_EQ(attempts, 10u);
}

TEST(Decider, DoesNotWaitForAWorkerThatLeft) {
  Decider decider(std::make_unique<StaticCountPolicy>(2), {.min_inclusion = 0.5});
  const auto all = workers(3);
  decider.decide({0, all});
  decider.learn({0, {1.0, 1.0, 1.0}, {Known::kArrived, Known::kArrived, Known::kLonger}, 1.0, 2});
  EXPECT_THAT(decider.decide({1, std::span(all).first(2)}).reason,
              AllOf(mentions("static", 2), Not(mentions("worker 2"))));
  EXPECT_THAT(decider.decide({1, all}).reason, mentions(3, "worker 2", 1));
}

// --- Decisions inside the step.

// Returns fixed choices, and records what it learns.
class LivePolicy : public Policy {
 public:
  LivePolicy(Choice first, std::optional<Choice> then)
      : first_(std::move(first)), then_(std::move(then)) {}
  Choice decide(const Situation& situation) override {
    shares.assign(situation.shares.begin(), situation.shares.end());
    fixed = situation.fixed;
    return first_;
  }
  std::optional<Choice> reconsider(const StepProgress& progress) override {
    asked.push_back(progress.now);
    return then_;
  }
  void learn(const StepTimes& times) override { learned.push_back(times); }
  void learn_late(Step, WorkerId, double seconds) override { late.push_back(seconds); }

  std::vector<double> shares;
  double fixed = -1.0;
  std::vector<double> asked;
  std::vector<StepTimes> learned;
  std::vector<double> late;

 private:
  const Choice first_;
  const std::optional<Choice> then_;
};

// The revised choice that the Decider makes of `chosen`, in a step of eight workers.
std::optional<Choice> reconsidered(const Choice& chosen, const DecisionLimits& limits,
                                   uint32_t here = 2) {
  Decider decider(std::make_unique<LivePolicy>(Choice{.cutoff = 5, .reason = "first"}, chosen),
                  limits);
  decider.decide({3, workers(8)});
  std::vector<double> arrived(8, kNoTimeLimit);
  std::fill_n(arrived.begin(), here, 1.0);
  return decider.reconsider({.step = 3, .now = 1.5, .arrived = arrived});
}

TEST(Decider, DoesNotChangeAValidRevision) {
  const Choice chosen{.cutoff = 4,
                      .time_limit = 2.0,
                      .at_least = 2,
                      .reason = "so",
                      .review = {.arrivals = 3, .at = 1.7}};
  const auto choice = reconsidered(chosen, {.at_least = 2, .max_wait = 10.0});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, 4u);
  EXPECT_EQ(choice->time_limit, 2.0);
  EXPECT_EQ(choice->at_least, 2u);
  EXPECT_EQ(choice->reason, "so");
  EXPECT_EQ(choice->review.arrivals, 3u);
  EXPECT_EQ(choice->review.at, 1.7);
}

TEST(Decider, RaisesARevisionToTheMinimum) {
  const auto choice =
      reconsidered({.cutoff = 2, .at_least = 2, .reason = "closes"}, {.at_least = 3});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, 3u);
  EXPECT_EQ(choice->at_least, 3u);
  EXPECT_THAT(choice->reason, mentions("closes", 3)) << "contains the policy's reason";
  const std::vector<double> sorted = {1.0, 1.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0};
  const StepClose close = close_of(*choice, sorted, 1.5);
  EXPECT_EQ(close.contributors, 3u);
  EXPECT_EQ(close.elapsed, 4.0);
}

TEST(Decider, LimitsTheWaitOfARevision) {
  const auto choice = reconsidered({.cutoff = 8, .reason = "waits on"}, {.max_wait = 3.0});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->time_limit, 3.0);
  EXPECT_THAT(choice->reason, mentions("waits on", 3));
}

TEST(Decider, CorrectsInvalidRevisions) {
  for (const uint32_t cutoff : {0u, 1u, 4000000000u}) {
    for (const uint32_t at_least : {0u, 5u, 4000000000u}) {
      const auto choice = reconsidered({.cutoff = cutoff, .at_least = at_least}, {});
      ASSERT_TRUE(choice);
      EXPECT_GE(choice->at_least, 1u);
      EXPECT_LE(choice->at_least, choice->cutoff);
      EXPECT_LE(choice->cutoff, 8u);
    }
  }
}

TEST(Decider, PassesOnThatThereIsNoRevision) {
  Decider decider(std::make_unique<LivePolicy>(Choice{.cutoff = 2}, std::nullopt), {.at_least = 4});
  decider.decide({0, workers(4)});
  EXPECT_FALSE(decider.reconsider({0, 1.0, std::vector{0.5, 9.0, 9.0, 9.0}}));
}

TEST(Decider, DoesNotReviseAStepThatWaitsForInclusion) {
  auto policy = std::make_unique<LivePolicy>(Choice{.cutoff = 2, .review = {.arrivals = 1}},
                                             Choice{.cutoff = 1, .reason = "closes"});
  LivePolicy& live = *policy;
  Decider decider(std::move(policy), {.min_inclusion = 0.5});
  const auto all = workers(3);
  const std::vector<double> arrived = {0.5, 9.0, 9.0};
  EXPECT_EQ(decider.decide({0, all}).review.arrivals, 1u);
  EXPECT_TRUE(decider.reconsider({0, 1.0, arrived}));
  decider.learn({0, {1.0, 1.0, 1.0}, {Known::kArrived, Known::kArrived, Known::kLonger}, 1.0, 2});
  const Choice all_workers = decider.decide({1, all});
  EXPECT_EQ(all_workers.cutoff, 3u);
  EXPECT_EQ(all_workers.review.arrivals, Review{}.arrivals) << "no review";
  EXPECT_EQ(all_workers.review.at, kNoTimeLimit);
  EXPECT_FALSE(decider.reconsider({1, 1.0, arrived}));
  EXPECT_EQ(live.asked.size(), 1u);
  decider.learn({1, {1.0, 1.0, 1.0}, std::vector(3, Known::kArrived), 1.0, 3});
  decider.decide({2, all});
  EXPECT_TRUE(decider.reconsider({2, 1.0, arrived})) << "the next step is revised";
}

// --- Balanced work.

TEST(Decider, WithoutBalanceAllSharesAreWhole) {
  auto policy = std::make_unique<LivePolicy>(Choice{.cutoff = 2}, std::nullopt);
  LivePolicy& live = *policy;
  Decider decider(std::move(policy), {});
  EXPECT_FALSE(decider.balances());
  decider.plan_shares(0, workers(2));
  EXPECT_EQ(decider.share(0, 1), 1.0);
  EXPECT_EQ(decider.deal(1, workers(2), 8), (std::vector<uint32_t>{8, 8}));
  decider.decide({0, workers(2)});
  decider.learn({0, {1.0, 2.0}, {Known::kArrived, Known::kArrived}, 2.0, 2});
  EXPECT_TRUE(live.shares.empty());
  EXPECT_TRUE(live.learned.front().shares.empty());
  EXPECT_EQ(live.learned.front().fixed, 0.0);
}

TEST(Decider, PassesTheSharesToThePolicy) {
  auto policy = std::make_unique<LivePolicy>(Choice{.cutoff = 4}, std::nullopt);
  LivePolicy& live = *policy;
  Decider decider(std::move(policy), {}, BalanceSettings{.warmup = 5});
  ASSERT_TRUE(decider.balances());
  const std::vector<double> costs = {1.0, 3.0, 1.0, 1.0, 2.0};
  const std::vector<WorkerId> alive = {0, 1, 2, 4};  // without worker 3
  for (Step step = 0; step < 40; ++step) {
    decider.plan_shares(step, alive);
    decider.decide({step, alive});
    ASSERT_EQ(live.shares.size(), alive.size());
    double sum = 0.0;
    for (size_t i = 0; i < alive.size(); ++i) {
      EXPECT_EQ(live.shares[i], decider.share(step, alive[i])) << "in the order of those alive";
      sum += live.shares[i];
    }
    EXPECT_NEAR(sum, 4.0, 1e-6);
    const double fixed = live.fixed;
    EXPECT_GE(fixed, 0.0);
    StepTimes times{.step = step, .elapsed = 3.0, .contributors = 4};
    for (WorkerId worker = 0; worker < 5; ++worker) {
      times.known.push_back(worker == 3 ? Known::kNothing : Known::kArrived);
      times.seconds.push_back(0.3 + costs[worker] * decider.share(step, worker));
    }
    decider.learn(times);
    const StepTimes& learned = live.learned.back();
    EXPECT_EQ(learned.seconds, times.seconds) << "not converted";
    ASSERT_EQ(learned.shares.size(), 5u) << "by worker";
    for (WorkerId worker = 0; worker < 5; ++worker) {
      EXPECT_EQ(learned.shares[worker], decider.share(step, worker));
    }
    EXPECT_EQ(learned.fixed, fixed) << "the value at the decision";
  }
  EXPECT_LT(decider.share(39, 1), 0.7) << "the slow worker gets less work";
  EXPECT_GT(live.fixed, 0.0);
  decider.learn_late(39, 1, 7.5);
  EXPECT_EQ(live.late, std::vector{7.5});
}

}  // namespace
}  // namespace drover::testing_support

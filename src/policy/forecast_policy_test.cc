#include "policy/forecast_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/test_text.h"
#include "policy/decider.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

// Returns fixed samples, once it has seen all workers alive.
class FakeForecaster : public Forecaster {
 public:
  explicit FakeForecaster(std::vector<std::vector<float>> rows, bool by_worker = true)
      : rows_(std::move(rows)), by_worker_(by_worker) {}

  void learn(const StepTimes& times) override {
    known_ = times.known.size();
    learned = times;
  }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    late = {step, worker, seconds};
  }
  bool ready(std::span<const WorkerId> alive) const override { return alive.back() < known_; }
  void forecast(Step, std::span<const WorkerId> alive, Forecast& out) override {
    out.resize(static_cast<uint32_t>(rows_.size()), static_cast<uint32_t>(alive.size()));
    for (uint32_t i = 0; i < rows_.size(); ++i) {
      for (size_t j = 0; j < alive.size(); ++j) out.row(i)[j] = rows_[i][alive[j]];
    }
    out.sorted = !by_worker_;
  }
  bool by_worker() const override { return by_worker_; }
  std::string basis() const override { return "what the test says"; }

  struct Late {
    Step step = 0;
    WorkerId worker = 0;
    double seconds = 0.0;
  } late;
  StepTimes learned;

 private:
  const std::vector<std::vector<float>> rows_;
  const bool by_worker_;  // otherwise rows are order statistics
  size_t known_ = 0;
};

const std::vector<WorkerId> kAlive = {0, 1, 2, 3};

StepTimes seen(Step step, size_t workers = 4) {
  return {step, std::vector(workers, 1.0), std::vector(workers, Known::kArrived), 1.0,
          static_cast<uint32_t>(workers)};
}

ForecastPolicy policy_of(std::vector<std::vector<float>> rows, Objective objective, Step warmup) {
  return {"fake",
          std::make_unique<FakeForecaster>(std::move(rows)),
          {.objective = objective, .warmup = warmup}};
}

TEST(ForecastPolicy, WaitsForAllDuringTheWarmUp) {
  auto policy = policy_of({{9.0F, 1.0F, 1.0F, 1.0F}}, Objective::kThroughput, 2);
  EXPECT_THAT(policy.decide({0, kAlive}).reason, mentions(4, 0, 2));
  policy.learn(seen(0));
  EXPECT_EQ(policy.decide({1, kAlive}).cutoff, 4u);
  policy.learn(seen(1));
  EXPECT_EQ(policy.decide({2, kAlive}).cutoff, 3u);
}

TEST(ForecastPolicy, SortsTheForecastAndReportsTheExpectation) {
  auto policy =
      policy_of({{9.0F, 1.0F, 1.5F, 1.0F}, {9.0F, 1.5F, 1.0F, 1.0F}}, Objective::kThroughput, 1);
  policy.learn(seen(0));
  const Choice choice = policy.decide({1, kAlive, 0.5});
  EXPECT_EQ(choice.cutoff, 3u);
  EXPECT_EQ(choice.time_limit, kNoTimeLimit);
  EXPECT_THAT(choice.reason, mentions("fake", 3, 4, "1.5", "what the test says"));
}

TEST(ForecastPolicy, WaitsForAllUntilEveryWorkerCanBeForecast) {
  auto policy = policy_of({{9.0F, 1.0F, 1.0F, 1.0F}}, Objective::kThroughput, 1);
  policy.learn(seen(0, 3));
  const Choice choice = policy.decide({1, kAlive});
  EXPECT_EQ(choice.cutoff, 4u);
  EXPECT_THAT(choice.reason, AllOf(mentions("fake", 4, 1), Not(mentions("what the test says"))));
  EXPECT_EQ(policy.decide({1, std::span(kAlive).first(3)}).cutoff, 2u);
}

TEST(ForecastPolicy, RateLearnsFromStepsItDecidedOnly) {
  auto policy = policy_of({{1.0F, 1.2F, 3.0F, 5.0F}}, Objective::kRate, 1);
  policy.decide({0, kAlive});
  policy.learn(
      {.step = 0, .known = std::vector(4, Known::kArrived), .elapsed = 1e6, .contributors = 4});
  // The warm-up does not count. Until a throughput is known, `rate` works as `throughput`.
  const Choice first = policy.decide({1, kAlive});
  EXPECT_EQ(first.cutoff, 2u);
  EXPECT_THAT(first.reason, mentions("fake", 2, 4, "1.67", "1.2", "what the test says"));
  // 2 gradients in 5 s are 0.4 gradients/s. The step waits for gradients that arrive faster than
  // that, although 4 in 5 s are fewer per second than 2 in 1.2 s.
  policy.learn(
      {.step = 1, .known = std::vector(4, Known::kArrived), .elapsed = 5.0, .contributors = 2});
  const Choice second = policy.decide({2, kAlive});
  EXPECT_EQ(second.cutoff, 4u);
  EXPECT_THAT(second.reason, mentions("fake", 4, 5, "0.4", "what the test says"));
}

TEST(ForecastPolicy, GoodputWaitsForFewerWhenThereIsLittleNoise) {
  auto policy = policy_of({{1.0F, 1.2F, 1.5F, 5.0F}}, Objective::kGoodput, 1);
  policy.learn(seen(0));
  const Choice unknown = policy.decide({1, kAlive});
  EXPECT_EQ(unknown.cutoff, 3u);
  EXPECT_THAT(unknown.reason,
              AllOf(mentions("fake", 3, 4, 2, "1.5", "what the test says"), Not(mentions(1))));
  // Progress 1, 4/3, 3/2, 8/5 of one gradient: 1, 1.11, 1, 0.32 per second.
  const Choice known = policy.decide({1, kAlive, 0.0, 1.0});
  EXPECT_EQ(known.cutoff, 2u);
  EXPECT_THAT(known.reason, mentions("fake", 2, 4, "1.11", "1.2", 1, "what the test says"));
}

// --- Live: decisions inside the step.

// A live policy after its warm-up.
std::unique_ptr<ForecastPolicy> live_policy(std::vector<std::vector<float>> rows,
                                            bool hedged = false, bool by_worker = true) {
  const size_t workers = rows.front().size();
  auto policy = std::make_unique<ForecastPolicy>(
      "fake", std::make_unique<FakeForecaster>(std::move(rows), by_worker),
      ForecastPolicySettings{.warmup = 1, .hedged = hedged, .live = true});
  policy->learn(seen(0, workers));
  return policy;
}

constexpr double kNot = kNoTimeLimit;  // has not arrived yet

std::optional<Choice> ask(ForecastPolicy& policy, double now, const std::vector<double>& arrived) {
  return policy.reconsider({.step = 1, .now = now, .arrived = arrived});
}

TEST(ForecastPolicy, LiveClosesWhenNoGradientIsWorthTheWait) {
  auto policy = live_policy({{1.0F, 1.0F, 1.0F, 1.2F}});
  const Choice first = policy->decide({1, kAlive});
  EXPECT_EQ(first.cutoff, 4u);
  EXPECT_LE(first.review.arrivals, 4u) << "there is a review";
  EXPECT_LE(first.review.at, 1.2 + 1e-6);
  const auto choice = ask(*policy, 3.0, {1.0, 1.0, 1.0, kNot});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, 3u) << "the number of arrivals";
  EXPECT_THAT(choice->reason, mentions("fake", 3, 4));
  EXPECT_EQ(choice->review.at, kNoTimeLimit) << "no further review";
}

TEST(ForecastPolicy, ACloseDoesNotMentionTheMaximumWait) {
  Decider decider(live_policy({{1.0F, 1.0F, 1.0F, 1.2F}}), {.max_wait = 10.0});
  decider.decide({1, kAlive});
  const auto choice =
      decider.reconsider({.step = 1, .now = 3.0, .arrived = std::vector{1.0, 1.0, 1.0, kNot}});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, 3u);
  EXPECT_THAT(choice->reason, AllOf(mentions("fake", 3, 4), Not(mentions(10))));
}

TEST(ForecastPolicy, LiveKeepsAPlanIfNoneIsBetter) {
  auto policy = live_policy({{1.0F, 1.0F, 1.0F, 1.2F}});
  const Choice first = policy->decide({1, kAlive});
  const auto choice = ask(*policy, 1.05, {1.0, 1.0, 1.0, kNot});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, first.cutoff);
  EXPECT_EQ(choice->time_limit, first.time_limit);
  EXPECT_THAT(choice->reason, mentions("fake", "1.05", 3, 4));
  EXPECT_GT(choice->review.at, 1.05) << "there is another review";
  EXPECT_LT(choice->review.at, kNoTimeLimit);
  EXPECT_GT(choice->review.arrivals, 3u);
}

// Four workers of a node that is slow in most samples. The first one arrives early if it is not.
std::unique_ptr<ForecastPolicy> with_a_node() {
  const std::vector<float> slow = {9.0F, 10.0F, 10.0F, 10.0F, 1.0F, 1.05F, 1.1F, 1.2F};
  const std::vector<float> well = {0.5F, 1.3F, 1.3F, 1.3F, 1.0F, 1.05F, 1.1F, 1.2F};
  return live_policy({slow, slow, slow, well});
}

TEST(ForecastPolicy, LiveWaitsForArrivalsThatHaveBecomeLikely) {
  auto policy = with_a_node();
  const std::vector<WorkerId> alive = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(policy->decide({1, alive}).cutoff, 4u);
  const auto choice = ask(*policy, 1.0, {0.5, kNot, kNot, kNot, 1.0, kNot, kNot, kNot});
  ASSERT_TRUE(choice);
  EXPECT_GT(choice->cutoff, 4u);
  EXPECT_GE(choice->time_limit, static_cast<double>(1.3F));
  EXPECT_LT(choice->time_limit, 9.0);
  EXPECT_EQ(choice->at_least, 2u) << "the number of arrivals so far";
  EXPECT_THAT(choice->reason, mentions("fake", 1, 2, 8, choice->cutoff, "1.3"));
  // The next review starts from the new plan.
  const auto next = ask(*policy, 1.1, {0.5, kNot, kNot, kNot, 1.0, 1.05, 1.1, kNot});
  ASSERT_TRUE(next) << "four have arrived, and the step stays open";
  EXPECT_EQ(next->cutoff, choice->cutoff);
  EXPECT_EQ(next->time_limit, choice->time_limit);
  EXPECT_THAT(next->reason, mentions("fake", "1.1", 4, 8, next->cutoff, "1.3"));
}

TEST(ForecastPolicy, LiveDoesNotReviewAStepThatClosesAnyway) {
  auto policy = with_a_node();
  const std::vector<WorkerId> alive = {0, 1, 2, 3, 4, 5, 6, 7};
  policy->decide({1, alive});
  EXPECT_FALSE(ask(*policy, 1.2, {kNot, kNot, kNot, kNot, 1.0, 1.05, 1.1, 1.2}));
}

TEST(ForecastPolicy, LiveIsDeterministic) {
  const auto reasons = [] {
    auto policy = with_a_node();
    const std::vector<WorkerId> alive = {0, 1, 2, 3, 4, 5, 6, 7};
    policy->decide({1, alive});
    std::string all;
    for (const double now : {1.0, 1.02, 1.04}) {
      const auto choice = ask(*policy, now, {kNot, kNot, kNot, kNot, 1.0, kNot, kNot, kNot});
      all += choice ? choice->reason + "; " : "nothing";
    }
    return all;
  };
  EXPECT_EQ(reasons(), reasons());
}

TEST(ForecastPolicy, LiveDoesNotReviewDuringTheWarmUp) {
  ForecastPolicy policy(
      "fake",
      std::make_unique<FakeForecaster>(std::vector<std::vector<float>>{{1.0F, 1.0F, 1.0F, 1.0F}}),
      {.warmup = 2, .live = true});
  EXPECT_EQ(policy.decide({0, kAlive}).review.at, kNoTimeLimit);
  EXPECT_FALSE(policy.reconsider({.step = 0, .now = 9.0, .arrived = std::vector(4, kNot)}));
}

TEST(ForecastPolicy, DecidesOnceUnlessLive) {
  auto policy = policy_of({{1.0F, 1.0F, 1.0F, 1.2F}}, Objective::kThroughput, 1);
  policy.learn(seen(0));
  const Choice choice = policy.decide({1, kAlive});
  EXPECT_EQ(choice.review.arrivals, Review{}.arrivals);
  EXPECT_EQ(choice.review.at, kNoTimeLimit);
  EXPECT_FALSE(ask(policy, 3.0, {1.0, 1.0, 1.0, kNot}));
}

TEST(ForecastPolicy, LiveDoesNotCloseWithoutArrivals) {
  auto policy = live_policy({{1.0F, 1.0F, 1.0F, 1.0F}});
  policy->decide({1, kAlive});
  // All workers are later than all samples, so the forecast does not say when the first arrives.
  const auto choice = ask(*policy, 30.0, {kNot, kNot, kNot, kNot});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->cutoff, 4u);
  EXPECT_THAT(choice->reason, mentions("fake", 30, 0, 4));
  EXPECT_GE(choice->at_least, 1u);
  EXPECT_GT(choice->review.at, 30.0);
}

// --- Live and hedged: ten workers, all early or all late.

const std::vector<WorkerId> kTen = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

std::unique_ptr<ForecastPolicy> soon_or_late() {
  return live_policy({std::vector<float>(10, 1.0F), std::vector<float>(10, 5.0F)}, true);
}

TEST(ForecastPolicy, LiveKeepsLimitAndMinimumOfAPlan) {
  auto policy = soon_or_late();
  const Choice first = policy->decide({1, kTen});
  ASSERT_GT(first.at_least, 1u) << "the minimum if all are late";
  ASSERT_LT(first.time_limit, kNoTimeLimit);
  const auto choice = ask(*policy, 3.0, std::vector(10, kNot));
  ASSERT_TRUE(choice);
  EXPECT_THAT(choice->reason, mentions("fake", 3, 0, 10));
  EXPECT_EQ(choice->cutoff, first.cutoff);
  EXPECT_EQ(choice->time_limit, first.time_limit);
  EXPECT_EQ(choice->at_least, first.at_least);
}

TEST(ForecastPolicy, LiveWaitsOnlyForTheMinimumAfterTheLimit) {
  auto policy = soon_or_late();
  const Choice first = policy->decide({1, kTen});
  const auto choice = ask(*policy, 2.0 * first.time_limit, std::vector(10, kNot));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->at_least, first.at_least);
  EXPECT_EQ(choice->cutoff, first.at_least);
  EXPECT_EQ(choice->time_limit, kNoTimeLimit) << choice->reason;
  std::vector<double> some(10, kNot);
  std::fill_n(some.begin(), first.at_least, 1.0);
  EXPECT_FALSE(ask(*policy, 2.5 * first.time_limit, some)) << "the minimum has arrived";
}

// --- Shares of a mini-batch.

TEST(ForecastPolicy, ScalesTheForecastToTheShares) {
  auto policy = live_policy({{1.0F, 1.0F, 1.0F, 1.0F}});
  EXPECT_EQ(policy->decide({.step = 1, .alive = kAlive}).cutoff, 4u);
  const std::vector<double> shares = {0.5, 0.5, 0.5, 2.5};
  EXPECT_EQ(policy->decide({.step = 1, .alive = kAlive, .shares = shares}).cutoff, 3u);
  // Nearly all of the run-time is fixed: 1 + 0.01 (s - 1).
  EXPECT_EQ(policy->decide({.step = 1, .alive = kAlive, .shares = shares, .fixed = 0.99}).cutoff,
            4u);
}

TEST(ForecastPolicy, LiveWaitsLongerForALargeShare) {
  // Three workers arrive at 1 s and one at 2 s with any shares. With an overhead of 4 s, the plan
  // is to wait for all four.
  const auto choice_with = [](const std::vector<double>& shares) {
    std::vector<float> whole;
    for (size_t i = 0; i < 4; ++i) {
      whole.push_back(static_cast<float>((i < 3 ? 1.0 : 2.0) / shares[i]));
    }
    auto policy = live_policy({whole});
    EXPECT_EQ(
        policy->decide({.step = 1, .alive = kAlive, .overhead = 4.0, .shares = shares}).cutoff, 4u);
    return ask(*policy, 1.0, {1.0, 1.0, 1.0, kNot}).value();
  };
  EXPECT_EQ(choice_with({0.5, 0.5, 0.5, 2.5}).cutoff, 4u) << "1.5 in 5, or 4 in 6";
  EXPECT_EQ(choice_with({1.3, 1.3, 1.3, 0.1}).cutoff, 3u) << "3.9 in 5, or 4 in 6";
}

TEST(ForecastPolicy, LiveUsesTheMissingSharesWithSortedForecasts) {
  // Order statistics do not say which worker arrives last, but the missing share is known.
  const auto choice_with = [](const std::vector<double>& shares) {
    auto policy = live_policy({{1.0F, 1.0F, 1.0F, 2.5F}}, false, false);
    EXPECT_EQ(
        policy->decide({.step = 1, .alive = kAlive, .overhead = 4.0, .shares = shares}).cutoff, 4u);
    return ask(*policy, 1.0, {kNot, 1.0, 1.0, 1.0}).value();
  };
  EXPECT_EQ(choice_with({0.1, 1.3, 1.3, 1.3}).cutoff, 3u) << "3.9 in 5, or 4 in 6.5";
  EXPECT_EQ(choice_with({2.5, 0.5, 0.5, 0.5}).cutoff, 4u) << "1.5 in 5, or 4 in 6.5";
}

TEST(ForecastPolicy, ForecastersLearnRunTimesOfWholeMiniBatches) {
  auto forecaster = std::make_unique<FakeForecaster>(std::vector<std::vector<float>>{});
  const FakeForecaster& fake = *forecaster;
  ForecastPolicy policy("fake", std::move(forecaster), {.warmup = 1});
  const StepTimes times{
      .step = 7,
      .seconds = {0.7, 2.2, 1.7, 0.0},
      .known = {Known::kArrived, Known::kArrived, Known::kLonger, Known::kNothing},
      .elapsed = 2.2,
      .contributors = 2,
      .fixed = 0.2,
      .shares = {0.5, 2.0, 1.5, 1.0}};
  policy.learn(times);
  EXPECT_NEAR(fake.learned.seconds[0], 0.2 + 0.5 / 0.5, 1e-12);
  EXPECT_NEAR(fake.learned.seconds[1], 0.2 + 2.0 / 2.0, 1e-12);
  EXPECT_NEAR(fake.learned.seconds[2], 0.2 + 1.5 / 1.5, 1e-12) << "bounds as well";
  EXPECT_EQ(fake.learned.seconds[3], 0.0);
  EXPECT_EQ(fake.learned.known, times.known);
  EXPECT_EQ(fake.learned.step, 7u);
  policy.learn_late(7, 2, 3.2);
  EXPECT_NEAR(fake.late.seconds, 0.2 + 3.0 / 1.5, 1e-12) << "by its share in that step";
  policy.learn_late(6, 2, 3.2);
  EXPECT_EQ(fake.late.seconds, 3.2) << "a step without shares";
}

TEST(ForecastPolicy, DoesNotConvertRunTimesForOrderStatistics) {
  auto forecaster = std::make_unique<FakeForecaster>(std::vector<std::vector<float>>{}, false);
  const FakeForecaster& fake = *forecaster;
  ForecastPolicy policy("fake", std::move(forecaster), {.warmup = 1});
  policy.learn({.step = 7,
                .seconds = {0.7, 2.2},
                .known = {Known::kArrived, Known::kLonger},
                .elapsed = 2.2,
                .contributors = 1,
                .shares = {0.5, 1.5}});
  EXPECT_EQ(fake.learned.seconds, (std::vector{0.7, 2.2}));
  policy.learn_late(7, 1, 3.2);
  EXPECT_EQ(fake.late.seconds, 3.2);
}

TEST(ForecastPolicy, ForwardsLateRunTimes) {
  auto forecaster = std::make_unique<FakeForecaster>(std::vector<std::vector<float>>{});
  const FakeForecaster& fake = *forecaster;
  ForecastPolicy policy("fake", std::move(forecaster), {.warmup = 1});
  policy.learn_late(7, 3, 2.5);
  EXPECT_EQ(fake.late.step, 7u);
  EXPECT_EQ(fake.late.worker, 3u);
  EXPECT_EQ(fake.late.seconds, 2.5);
}

}  // namespace
}  // namespace drover

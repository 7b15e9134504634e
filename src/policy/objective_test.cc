#include "policy/objective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/test_text.h"
#include "forecast/test_steps.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Not;

ExpectedThroughput best_of(const Forecast& forecast, const Terms& terms) {
  CutoffSearch search;
  return search.best(forecast, terms);
}

TEST(Objective, ThroughputIsTheExpectationOfTheRatio) {
  // One gradient always arrives at 1: throughput 1. Two arrive at 1.25 or at 4: 2/1.25 and 2/4, on
  // average 1.05. The ratio of expectations, 2 / 2.625, would be lower than 1.
  const ExpectedThroughput best = best_of(sorted_forecast({{1.0F, 1.25F}, {1.0F, 4.0F}}), {});
  EXPECT_EQ(best.cutoff, 2u);
  EXPECT_DOUBLE_EQ(best.value, 1.05);
  EXPECT_DOUBLE_EQ(best.arrival, 2.625);
}

TEST(Objective, OverheadMakesWaitingWorthwhile) {
  const Forecast forecast = sorted_forecast({{1.0F, 3.0F}});
  EXPECT_EQ(best_of(forecast, {.overhead = 0.5}).cutoff, 1u);
  EXPECT_EQ(best_of(forecast, {.overhead = 2.0}).cutoff, 2u);
}

TEST(Objective, RateWaitsWhileTheNextArrivalIsSoonerThanTheLongRunAverage) {
  const Forecast forecast = sorted_forecast({{1.0F, 2.0F, 4.0F, 7.0F}});
  EXPECT_EQ(best_of(forecast, {.lambda = 1.1}).cutoff, 1u);
  EXPECT_EQ(best_of(forecast, {.lambda = 0.9}).cutoff, 2u);
  EXPECT_EQ(best_of(forecast, {.lambda = 0.4}).cutoff, 3u);
  EXPECT_EQ(best_of(forecast, {.lambda = 0.3}).cutoff, 4u);
  EXPECT_NEAR(best_of(forecast, {.overhead = 1.0, .lambda = 0.4}).value, 3.0 - 0.4 * 5.0, 1e-12);
}

TEST(Objective, TiesGoToTheLargerCutoff) {
  const Forecast forecast = sorted_forecast({{1.0F, 2.0F, 3.0F}, {2.0F, 4.0F, 6.0F}});
  EXPECT_EQ(best_of(forecast, {}).cutoff, 3u);
  EXPECT_EQ(best_of(forecast, {.lambda = 2.0 / 3.0}).cutoff, 3u);
  EXPECT_EQ(CutoffSearch::best(std::vector{49.0, 98.0}, {}).cutoff, 2u);
}

TEST(Objective, MatchesDirectEvaluationOfTheFormulas) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto workers = static_cast<uint32_t>(1 + draw({seed, 1}) % (seed % 3 == 0 ? 2000 : 20));
    const auto samples = static_cast<uint32_t>(1 + draw({seed, 2}) % 20);
    Forecast forecast;
    forecast.resize(samples, workers);
    for (size_t i = 0; i < forecast.times.size(); ++i) {
      forecast.times[i] = static_cast<float>(0.1 - std::log(1.0 - unit_draw(seed, i)));
    }
    // Some samples have equal run-times, so that many cutoffs are nearly as good as the best.
    if (seed % 4 == 0) std::fill_n(forecast.times.begin(), workers, 3.0F);
    sort_rows(forecast);
    for (const Terms& terms :
         {Terms{}, Terms{.overhead = 0.7}, Terms{.overhead = 0.2, .lambda = 5.0},
          Terms{.overhead = 0.3, .noise = 2.5}, Terms{.overhead = 2.0, .noise = 70.0},
          Terms{.noise = 5000.0}, Terms{.noise = 0.0}}) {
      uint32_t best = 0;
      double best_value = 0.0;
      for (uint32_t c = 1; c <= workers; ++c) {
        double mean = 0.0;
        for (uint32_t k = 0; k < samples; ++k) {
          const double time = terms.overhead + static_cast<double>(forecast.row(k)[c - 1]);
          const double nu = terms.noise.value_or(0.0);
          const double progress = nu > 0.0 ? c * (nu + 1.0) / (nu + c) : c;
          mean += (terms.lambda ? c - *terms.lambda * time : progress / time) / samples;
        }
        if (best == 0 || mean > best_value) best = c, best_value = mean;
      }
      const ExpectedThroughput found = best_of(forecast, terms);
      EXPECT_EQ(found.cutoff, best);
      EXPECT_NEAR(found.value, best_value, 1e-9);
    }
  }
}

TEST(Objective, GoodputCountsProgressInSteps) {
  const Terms terms{.noise = 3.0};
  EXPECT_DOUBLE_EQ(terms.value(1, 1.0), 1.0) << "one gradient is the unit";
  EXPECT_DOUBLE_EQ(terms.value(3, 1.0), 2.0) << "3 (3 + 1) / (3 + 3)";
  EXPECT_DOUBLE_EQ(terms.value(9, 2.0), 1.5) << "9 (3 + 1) / (3 + 9), in twice the time";
  // Gradients at 1, 1.5 and 2: throughput 1, 4/3, 3/2. With a noise scale of 1, progress is 1, 4/3,
  // 3/2 and goodput 1, 8/9, 3/4.
  const Forecast forecast = sorted_forecast({{1.0F, 1.5F, 2.0F}});
  EXPECT_EQ(best_of(forecast, {}).cutoff, 3u);
  EXPECT_EQ(best_of(forecast, {.noise = 1.0}).cutoff, 1u);
  EXPECT_DOUBLE_EQ(best_of(forecast, {.noise = 1.0}).value, 1.0);
  // With an overhead of 3, goodput is 1/4, 4/13.5, 3/10.
  EXPECT_EQ(best_of(forecast, {.overhead = 3.0, .noise = 1.0}).cutoff, 3u);
}

TEST(Objective, GoodputIsThroughputWithNoiseOnlyAndOneGradientWithoutAny) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Forecast forecast;
    forecast.resize(8, 50);
    for (size_t i = 0; i < forecast.times.size(); ++i)
      forecast.times[i] = static_cast<float>(0.5 + unit_draw(seed, i));
    sort_rows(forecast);
    const ExpectedThroughput throughput = best_of(forecast, {.overhead = 0.1});
    for (const double noise : {0.0, 1e13}) {
      const ExpectedThroughput goodput = best_of(forecast, {.overhead = 0.1, .noise = noise});
      EXPECT_EQ(goodput.cutoff, throughput.cutoff) << noise;
      EXPECT_NEAR(goodput.value, throughput.value, 1e-9);
    }
    EXPECT_EQ(best_of(forecast, {.overhead = 0.1, .noise = 1e-9}).cutoff, 1u);
    uint32_t before = 1;
    for (double noise = 0.01; noise < 1e5; noise *= 3.0) {
      const uint32_t cutoff = best_of(forecast, {.overhead = 0.1, .noise = noise}).cutoff;
      EXPECT_GE(cutoff, before) << "more noise makes more gradients worth their time";
      before = cutoff;
    }
  }
}

// E[X_{K:P}] = shift + (1/mu) sum_{i=P-K+1}^{P} 1/i for shifted exponential run-times (Dutta et
// al.).
double expected_arrival(uint32_t k, uint32_t workers, double shift, double mu) {
  double sum = 0.0;
  for (uint32_t i = workers - k + 1; i <= workers; ++i) sum += 1.0 / i;
  return shift + sum / mu;
}

TEST(Objective, MatchesTheOrderStatisticsOfShiftedExponentials) {
  constexpr uint32_t kWorkers = 40;
  constexpr double kShift = 1.0;
  constexpr double kMu = 2.0;
  Forecast forecast;
  forecast.resize(20000, kWorkers);
  for (size_t i = 0; i < forecast.times.size(); ++i) {
    forecast.times[i] = static_cast<float>(kShift - std::log(1.0 - unit_draw(17, i)) / kMu);
  }
  sort_rows(forecast);
  // The mean time until the next gradient is 1 / (mu (P - c)). A step waits while that is below
  // 1/lambda, so c* = P - lambda / mu, rounded up. The lambdas are such that sampling noise does
  // not change c*.
  for (const double lambda : {3.0, 9.0, 21.0, 41.0}) {
    const Terms terms{.overhead = 0.3, .lambda = lambda};
    uint32_t known = 1;
    for (uint32_t c = 1; c <= kWorkers; ++c) {
      const auto value = [&](uint32_t k) {
        return terms.value(k, expected_arrival(k, kWorkers, kShift, kMu));
      };
      if (value(c) >= value(known)) known = c;
    }
    EXPECT_EQ(known, static_cast<uint32_t>(std::ceil(kWorkers - lambda / kMu)));
    const ExpectedThroughput best = best_of(forecast, terms);
    EXPECT_EQ(best.cutoff, known) << lambda;
    EXPECT_NEAR(best.arrival, expected_arrival(known, kWorkers, kShift, kMu), 0.01);
  }
}

TEST(Objective, KnownRunTimesEqualAForecastOfOneSample) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<double> times;
    for (uint64_t i = 0; i < 12; ++i) times.push_back(static_cast<float>(0.2 + unit_draw(seed, i)));
    std::sort(times.begin(), times.end());
    const Forecast forecast = sorted_forecast({std::vector<float>(times.begin(), times.end())});
    for (const Terms& terms : {Terms{.overhead = 0.1}, Terms{.lambda = 8.0}, Terms{.noise = 4.0}}) {
      EXPECT_EQ(CutoffSearch::best(times, terms).cutoff, best_of(forecast, terms).cutoff);
    }
  }
}

TEST(Goal, LearnsTheLongRunThroughputFromSteps) {
  Goal goal(Objective::kRate);
  EXPECT_FALSE(goal.terms(0.5, 0.0).lambda) << "falls back to throughput";
  goal.learn({.elapsed = 1.5, .contributors = 10});
  EXPECT_DOUBLE_EQ(goal.terms(0.5, 0.0).lambda.value(), 5.0) << "the overhead is part of the time";
  for (int i = 0; i < 400; ++i) goal.learn({.elapsed = 0.5, .contributors = 8});
  EXPECT_NEAR(goal.terms(0.5, 0.0).lambda.value(), 8.0, 0.01) << "old steps lose their weight";
}

TEST(Goal, ThroughputDoesNotUseTheLongRunThroughput) {
  Goal goal(Objective::kThroughput);
  goal.learn({.elapsed = 1.5, .contributors = 10});
  EXPECT_FALSE(goal.terms(0.0, 3.0).lambda);
  EXPECT_FALSE(goal.terms(0.0, 3.0).noise);
}

TEST(Goal, GoodputUsesTheNoiseOfTheStep) {
  Goal goal(Objective::kGoodput);
  EXPECT_EQ(goal.terms(0.5, 0.0).noise, 0.0) << "not known yet";
  const Terms terms = goal.terms(0.5, 3.25);
  EXPECT_EQ(terms.noise, 3.25);
  const ExpectedThroughput expected{.cutoff = 2, .value = 4.125, .arrival = 7.65};
  EXPECT_THAT(describe(expected, terms, TimeUnit::kSeconds),
              mentions("4.12 gradients/s", "7.65 s", "3.25 gradients"));
  EXPECT_THAT(describe(expected, goal.terms(0.5, 0.0), TimeUnit::kUnknown),
              AllOf(mentions("4.12", "7.65 time units"), Not(mentions("3.25")), Not(mentions(0))));
}

// --- Inside a step, where gradients may count unequally.

TEST(Terms, ValueOfEqualsValueForWholeGradients) {
  for (const Terms& terms :
       {Terms{}, Terms{.overhead = 0.5}, Terms{.overhead = 0.5, .lambda = 3.0}, Terms{.noise = 4.0},
        Terms{.overhead = 0.2, .lambda = 1.0, .noise = 4.0}}) {
    for (uint32_t cutoff = 1; cutoff < 20; ++cutoff) {
      EXPECT_EQ(terms.value_of(cutoff, 1.5), terms.value(cutoff, 1.5));
    }
  }
}

TEST(Terms, WeightsAGradientByItsShare) {
  EXPECT_DOUBLE_EQ(Terms{.overhead = 0.5}.value_of(2.6, 1.5), 1.3);
  const Terms rate{.overhead = 0.5, .lambda = 3.0};
  EXPECT_DOUBLE_EQ(rate.value_of(2.6, 1.5), 2.6 - 3.0 * 2.0);
  EXPECT_DOUBLE_EQ(rate.value_of(0.0, 1.5), -6.0);
  // Progress p(c) = c (nu + 1) / (nu + c).
  const Terms noisy{.lambda = 1.0, .noise = 3.0};
  EXPECT_DOUBLE_EQ(noisy.value_of(1.5, 2.0), 1.5 * 4.0 / 4.5 - 2.0);
}

TEST(Terms, WorthExcludesTheCostOfTheTime) {
  const Terms ratio{.overhead = 0.5};
  EXPECT_DOUBLE_EQ(ratio.worth_of(2.6, 1.5), ratio.value_of(2.6, 1.5));
  const Terms rate{.overhead = 0.5, .lambda = 3.0};
  EXPECT_DOUBLE_EQ(rate.worth_of(2.6, 1.5), 2.6);
  EXPECT_DOUBLE_EQ(rate.worth_of(2.6, 900.0), 2.6);
  for (const double noise : {0.5, 3.0, 100.0}) {
    const Terms terms{.overhead = 0.1, .lambda = 2.0, .noise = noise};
    EXPECT_DOUBLE_EQ(terms.value_of(4.0, 1.0), terms.worth_of(4.0, 1.0) - 2.0 * 1.1);
  }
}

TEST(Goal, LongRunTermsHaveTheThroughputReachedSoFar) {
  for (const Objective objective :
       {Objective::kThroughput, Objective::kRate, Objective::kGoodput}) {
    Goal goal(objective);
    goal.terms(0.5, 0.0);
    EXPECT_FALSE(goal.long_run().lambda) << "nothing is known yet";
    goal.learn({.elapsed = 1.5, .contributors = 10});
    goal.terms(0.5, 0.0);
    EXPECT_DOUBLE_EQ(goal.long_run().lambda.value(), 5.0) << name_of(objective);
    EXPECT_EQ(goal.long_run().overhead, 0.5);
  }
}

TEST(Goal, LongRunTermsHaveNoiseOnlyForGoodput) {
  Goal throughput(Objective::kThroughput);
  throughput.terms(0.0, 3.0);
  EXPECT_FALSE(throughput.long_run().noise);
  Goal goodput(Objective::kGoodput);
  goodput.terms(0.5, 3.0);
  // 9 gradients make the progress of 9 (3 + 1) / (3 + 9) = 3 steps with one gradient.
  goodput.learn({.elapsed = 1.0, .contributors = 9});
  goodput.terms(0.5, 7.0);
  const Terms terms = goodput.long_run();
  EXPECT_DOUBLE_EQ(terms.lambda.value(), 3.0 / 1.5) << "progress, with the noise of that step";
  EXPECT_EQ(terms.noise, 7.0) << "the noise of the open step";
}

TEST(Goal, CountsTheSharesThatArrived) {
  const StepTimes times{
      .seconds = {1.0, 1.0, 2.0, 0.0},
      .known = {Known::kArrived, Known::kArrived, Known::kLonger, Known::kNothing},
      .elapsed = 2.0,
      .contributors = 2,
      .shares = {1.5, 0.5, 1.0, 1.0}};
  for (const Objective objective : {Objective::kThroughput, Objective::kRate}) {
    Goal goal(objective);
    goal.learn(times);
    EXPECT_DOUBLE_EQ(goal.long_run().lambda.value(), 2.0 / 2.0);
  }
  StepTimes large = times;
  large.shares = {2.5, 0.5, 0.5, 0.5};
  Goal goal(Objective::kRate);
  goal.learn(large);
  EXPECT_DOUBLE_EQ(goal.long_run().lambda.value(), 3.0 / 2.0);
  Goal goodput(Objective::kGoodput);
  goodput.terms(0.0, 3.0);
  goodput.learn(large);
  EXPECT_DOUBLE_EQ(goodput.long_run().lambda.value(), 3.0 * 4.0 / 6.0 / 2.0) << "progress of 3";
}

TEST(Objective, HasNames) {
  for (const Objective objective :
       {Objective::kThroughput, Objective::kRate, Objective::kGoodput}) {
    EXPECT_EQ(parse_objective(name_of(objective)).value(), objective);
  }
  const Error unknown = parse_objective("ratee").error();
  EXPECT_THAT(unknown,
              is_error(ErrorKind::kInvalidInput, "ratee", "throughput", "rate", "goodput"));
  EXPECT_THAT(unknown.message, proposes("rate"));
  EXPECT_EQ(name_of(Objective::kGoodput), "goodput");
}

}  // namespace
}  // namespace drover::testing_support

// Fitted models as forecasters, on synthetic clusters with a known distribution.
#include <gtest/gtest.h>

#include "fit/fit_module.h"
#include "fit/test_histories.h"
#include "fit/torch/slow_forecast.h"

namespace drover {
namespace {

ModelWeights fitted(const History& history, Emission emission, uint32_t iterations) {
  FitRequest request;
  request.shape = default_shape(emission, history.workers());
  request.shape.window = 8;
  request.history = std::make_shared<const History>(history);
  request.settings.iterations = iterations;
  const Result<FitFunction> fit = load_fit_function();
  EXPECT_TRUE(fit.ok()) << fit.error().message;
  Result<FitOutcome> outcome = fit.value()(request, {});
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return std::move(outcome).value().weights;
}

// The optimum for wavy_history, by a Kalman filter that knows everything except the state: the log
// likelihood of each row given the earlier ones.
std::vector<double> kalman_likelihoods(const History& history, uint64_t seed) {
  constexpr double kNoise = 0.05 * 0.05;
  const double n = history.workers();
  double mean = 0.0;
  double variance = 0.01;
  std::vector<double> logs;
  for (size_t t = 0; t < history.steps(); ++t) {
    // The row is normal with covariance variance 1 1' + noise I.
    double sum = 0.0;
    double squares = 0.0;
    for (uint64_t i = 0; i < history.workers(); ++i) {
      const double rest = history.row(t)[i].log_time - 0.3 * normal_draw({seed, 2, i}) - mean;
      sum += rest;
      squares += rest * rest;
    }
    const double gain = variance / (kNoise + n * variance);
    const double log_det = (n - 1.0) * std::log(kNoise) + std::log(kNoise + n * variance);
    logs.push_back(-0.5 * (n * std::log(2.0 * std::numbers::pi) + log_det +
                           (squares - gain * sum * sum) / kNoise));
    mean = 0.9 * (mean + gain * sum);
    variance = 0.81 * variance * (1.0 - n * gain) + 0.01;
  }
  return logs;
}

struct Score {
  double short_of_optimum = 0.0;  // log likelihood per run-time
  double inside = 0.0;            // share of run-times within the central 90 %
};

Score score_on_new_steps(Emission emission, uint64_t seed) {
  constexpr size_t kFitted = 400;
  constexpr size_t kNew = 120;
  const History all = wavy_history(8, kFitted + kNew, seed);
  const std::vector<double> best = kalman_likelihoods(all, seed);
  const ModelWeights weights = fitted(all.part(0, kFitted), emission, 300);
  Score score;
  for (size_t t = kFitted; t < all.steps(); ++t) {
    const auto forecast = slow_forecast(weights, all, t, 32, 1);
    score.short_of_optimum += best[t] - log_likelihood(forecast, all.row(t));
    for (size_t i = 0; i < all.workers(); ++i) {
      const double longer = longer_than(forecast, i, all.row(t)[i].log_time);
      if (longer > 0.05 && longer < 0.95) score.inside += 1.0;
    }
  }
  const double entries = static_cast<double>(kNew) * all.workers();
  score.short_of_optimum /= entries;
  score.inside /= entries;
  return score;
}

// A forecast with the exact mean and spread of each worker, but without their correlation, is 0.6
// below the optimum.
TEST(Forecast, OfThePublishedModelIsNearlyTheKalmanFilters) {
  const Score score = score_on_new_steps(Emission::kWorkers, 3);
  EXPECT_LT(score.short_of_optimum, 0.15);
  EXPECT_GT(score.inside, 0.83);
  EXPECT_LT(score.inside, 0.96);
}

// The model must estimate each worker's level from recent steps, so it also works outside the range
// of the data: in one of six new steps, all workers take longer than in any step before.
TEST(Forecast, OfTheSharedModelIsNearTheKalmanFiltersAlsoOutsideTheData) {
  const Score score = score_on_new_steps(Emission::kShared, 6);
  EXPECT_LT(score.short_of_optimum, 0.2);
  EXPECT_GT(score.inside, 0.83);
  EXPECT_LT(score.inside, 0.96);
}

// All known run-times in the record are below the median, which is 0.
TEST(Forecast, WhatWasCutShortCountsAsLonger) {
  const History halved = halved_history(8, 160, 1);
  History taken_for_times;
  for (size_t t = 0; t < halved.steps(); ++t) {
    std::vector<PastTime> row(halved.row(t).begin(), halved.row(t).end());
    for (PastTime& time : row) {
      if (time.known == Known::kLonger) time = arrived(time.bound);
    }
    taken_for_times.add(t, row);
  }
  const auto longer_than_median = [](const History& history, Emission emission) {
    const ModelWeights weights = fitted(history, emission, 120);
    double sum = 0.0;
    for (size_t t = history.steps() - 10; t < history.steps(); ++t) {
      const auto forecast = slow_forecast(weights, history, t, 20, 1);
      for (size_t i = 0; i < history.workers(); ++i) sum += longer_than(forecast, i, 0.0);
    }
    return sum / (10.0 * history.workers());
  };
  for (const Emission emission : {Emission::kShared, Emission::kWorkers}) {
    SCOPED_TRACE(name_of(emission));
    const double honest = longer_than_median(halved, emission);
    EXPECT_NEAR(honest, 0.5, 0.1);
    EXPECT_LT(longer_than_median(taken_for_times, emission), honest - 0.15);
  }
}

}  // namespace
}  // namespace drover

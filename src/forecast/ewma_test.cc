// A level must follow its worker within a few steps, and must not drift under censoring, neither
// by bounds nor by imputed values.
#include "forecast/ewma.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "forecast/normal.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

std::vector<double> noisy_times(std::mt19937_64& random, size_t workers, double sigma = 0.05) {
  std::lognormal_distribution<double> time(0.0, sigma);
  std::vector<double> times(workers);
  for (double& each : times) each = time(random);
  return times;
}

double median_of(EwmaForecaster& forecaster, Step step, size_t workers, size_t worker) {
  Forecast out;
  forecaster.forecast(step, first_workers(workers), out);
  return quantile_of(samples_of(out, worker), 0.5);
}

TEST(Ewma, FollowsASlowDownWithinAFewSteps) {
  std::mt19937_64 random(1);
  EwmaForecaster forecaster({});
  for (Step step = 0; step < 56; ++step) {
    auto times = noisy_times(random, 10);
    if (step >= 50) times[2] *= 2.0;
    forecaster.learn(observed(step, times));
  }
  EXPECT_NEAR(median_of(forecaster, 56, 10, 2), 2.0, 0.3);
  EXPECT_NEAR(median_of(forecaster, 56, 10, 3), 1.0, 0.1);
}

TEST(Ewma, ForecastsTheSpreadOfAStationaryCluster) {
  std::mt19937_64 random(2);
  EwmaForecaster forecaster({});
  for (Step step = 0; step < 100; ++step)
    forecaster.learn(observed(step, noisy_times(random, 40, 0.3)));
  Forecast out;
  forecaster.forecast(100, first_workers(40), out);
  std::vector<float> all = out.times;
  std::sort(all.begin(), all.end());
  for (const double u : {0.1, 0.5, 0.9, 0.98}) {
    // The moving level adds a little to the spread: sqrt(1 + 2 alpha / (2 - alpha)) = 1.16.
    EXPECT_NEAR(std::log(quantile_of(all, u)), 0.3 * 1.1 * normal_quantile(u), 0.1) << u;
  }
}

TEST(Ewma, IsCorrectUnderCensoring) {
  // After the warm-up, the cutoff censors the slower half of the cluster.
  std::mt19937_64 random(3);
  EwmaForecaster forecaster({});
  for (Step step = 0; step < 300; ++step) {
    forecaster.learn(observed(step, noisy_times(random, 40, 0.3), step < 20 ? 1e300 : 1.0));
  }
  Forecast out;
  forecaster.forecast(300, first_workers(40), out);
  std::vector<float> all = out.times;
  std::sort(all.begin(), all.end());
  EXPECT_NEAR(quantile_of(all, 0.5), 1.0, 0.15);
  EXPECT_GT(quantile_of(all, 0.9), 1.2);
  EXPECT_LT(quantile_of(all, 0.9), 2.2);
}

TEST(Ewma, ALevelDoesNotDriftWithoutMeasurements) {
  // Three times slower in the warm-up, censored in every later step.
  std::mt19937_64 random(4);
  EwmaForecaster forecaster({});
  for (Step step = 0; step < 2000; ++step) {
    auto times = noisy_times(random, 10);
    times[4] *= 3.0;
    forecaster.learn(observed(step, times, step < 20 ? 1e300 : 1.5));
  }
  EXPECT_NEAR(median_of(forecaster, 2000, 10, 4), 3.0, 0.3);
}

TEST(Ewma, ALateRunTimeReplacesTheImputedOne) {
  std::mt19937_64 random(5);
  EwmaForecaster late({});
  EwmaForecaster full({});
  for (Step step = 0; step < 60; ++step) {
    auto times = noisy_times(random, 10);
    times[7] *= step < 40 ? 1.0 : 4.0;
    late.learn(observed(step, times, step < 40 ? 1e300 : 1.5));
    full.learn(observed(step, times));
    if (step >= 45) late.learn_late(step - 5, 7, 4.0);
  }
  EXPECT_NEAR(median_of(late, 60, 10, 7), 4.0, 0.5);
  EXPECT_NEAR(median_of(full, 60, 10, 7), 4.0, 0.5);
}

TEST(Ewma, WorkersHaveScalesOfTheirOwn) {
  std::mt19937_64 random(6);
  EwmaForecaster forecaster({});
  for (Step step = 0; step < 100; ++step) {
    auto times = noisy_times(random, 10, 0.01);
    times[1] = std::pow(times[1], 30.0);  // sigma 0.3
    forecaster.learn(observed(step, times));
  }
  Forecast out;
  forecaster.forecast(100, first_workers(10), out);
  const auto spread = [&](size_t worker) {
    const auto samples = samples_of(out, worker);
    return std::log(quantile_of(samples, 0.9) / quantile_of(samples, 0.1));
  };
  EXPECT_GT(spread(1), 0.4);
  EXPECT_LT(spread(2), 0.1);
}

TEST(Ewma, AShortOutlierDoesNotScaleToOthers) {
  // Worker 0 varies twenty times more than the others, each of which was very fast once.
  std::mt19937_64 random(7);
  EwmaForecaster forecaster({});
  double fastest = 1.0;
  for (Step step = 0; step < 60; ++step) {
    auto times = noisy_times(random, 10, 0.01);
    times[0] = std::pow(times[0], 20.0);
    fastest = std::min(fastest, times[0]);
    if (step > 50) times[step - 50] = 0.8;
    forecaster.learn(observed(step, times));
  }
  Forecast out;
  for (Step step = 60; step < 80; ++step) {
    forecaster.forecast(step, first_workers(10), out);
    ASSERT_GE(samples_of(out, 0).front(), 0.99 * fastest);
  }
}

}  // namespace
}  // namespace drover

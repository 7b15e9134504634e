// Workers must be forecast by their own run-times, with the tail that cutoffs hide, independently
// of each other, and adapt when they change.
#include "forecast/ecdf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "forecast/normal.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

std::vector<double> lognormal_times(std::mt19937_64& random, size_t workers, double sigma) {
  std::lognormal_distribution<double> time(0.0, sigma);
  std::vector<double> times(workers);
  for (double& each : times) each = time(random);
  return times;
}

TEST(Ecdf, IsCorrectUnderHeavyCensoring) {
  // Lognormal, sigma 0.5: after the warm-up, the cutoff at 1.25 censors a third of the run-times.
  // A worker's few recent run-times determine its median imprecisely, which makes the forecast
  // wider.
  for (const bool per_worker : {true, false}) {
    SCOPED_TRACE(per_worker ? "per worker" : "pooled");
    const double tolerance = per_worker ? 0.2 : 0.1;
    std::mt19937_64 random(1);
    const size_t workers = 100;
    EcdfForecaster forecaster({.warmup = 30, .per_worker = per_worker});
    std::vector<float> naive;
    for (Step step = 0; step < 200; ++step) {
      const StepTimes times =
          observed(step, lognormal_times(random, workers, 0.5), step < 30 ? 1e300 : 1.25);
      forecaster.learn(times);
      if (step < 180) continue;
      for (const double x : times.seconds) naive.push_back(static_cast<float>(x));
    }
    std::sort(naive.begin(), naive.end());
    Forecast out;
    forecaster.forecast(200, first_workers(workers), out);
    std::vector<float> all = out.times;
    std::sort(all.begin(), all.end());
    for (const double u : {0.1, 0.25, 0.5, 0.75, 0.9, 0.95}) {
      const double truth = std::exp(0.5 * normal_quantile(u));
      EXPECT_NEAR(quantile_of(all, u) / truth, 1.0, tolerance) << u;
    }
    const double truth = std::exp(0.5 * normal_quantile(0.9));
    EXPECT_LT(quantile_of(naive, 0.9) / truth, 0.7) << "bounds treated as run-times are too short";
  }
}

TEST(Ecdf, RemembersAPersistentStraggler) {
  // Three times slower in the warm-up, censored in every later step.
  EcdfForecaster forecaster({});
  std::vector<double> times(10, 1.0);
  for (Step step = 0; step < 1000; ++step) {
    for (size_t i = 0; i < 10; ++i) times[i] = 1.0 + 0.01 * static_cast<double>((step + i) % 5);
    times[4] = 3.0 + 0.1 * static_cast<double>(step % 5);
    forecaster.learn(observed(step, times, step < 20 ? 1e300 : 1.05));
  }
  Forecast out;
  forecaster.forecast(1000, first_workers(10), out);
  EXPECT_GE(quantile_of(samples_of(out, 4), 0.1), 2.99);
  EXPECT_LE(quantile_of(samples_of(out, 4), 0.9), 3.41);
  EXPECT_LE(quantile_of(samples_of(out, 5), 0.9), 1.05);
}

TEST(Ecdf, UsesThePooledCurveBeyondAWorkersBounds) {
  // Worker 0 has only bounds at 1.5; others arrived at 1, 2 and 4 (equally often).
  EcdfForecaster forecaster({.pooled_share = 0.0});
  for (Step step = 0; step < 30; ++step) {
    StepTimes times = observed(step, std::vector<double>{1.5, 1.0, 2.0, 4.0});
    times.known[0] = Known::kLonger;
    forecaster.learn(times);
  }
  Forecast out;
  forecaster.forecast(30, first_workers(4), out);
  const auto samples = samples_of(out, 0);
  EXPECT_NEAR(quantile_of(samples, 0.05), 2.0, 0.02);
  EXPECT_NEAR(quantile_of(samples, 0.45), 2.0, 0.02);
  EXPECT_NEAR(quantile_of(samples, 0.55), 4.0, 0.04);
  EXPECT_NEAR(quantile_of(samples, 0.95), 4.0, 0.04);
}

TEST(Ecdf, SlowWorkersDoNotDistortTheTailOfAFastOne) {
  // Half of the workers take three times as long; the cutoff is just short of the fast half's end.
  std::mt19937_64 random(8);
  EcdfForecaster forecaster({});
  for (Step step = 0; step < 200; ++step) {
    auto times = lognormal_times(random, 100, 0.05);
    for (size_t i = 50; i < 100; ++i) times[i] *= 3.0;
    forecaster.learn(observed(step, times, step < 20 ? 1e300 : 1.05));
  }
  Forecast out;
  forecaster.forecast(200, first_workers(100), out);
  size_t long_ones = 0;
  for (uint32_t k = 0; k < out.samples; ++k) {
    for (const float time : out.row(k).first(50)) long_ones += time > 1.5F ? 1 : 0;
  }
  EXPECT_LT(static_cast<double>(long_ones) / (50.0 * out.samples), 0.01);
}

TEST(Ecdf, HasAShortTailBeyondAllBounds) {
  EcdfForecaster forecaster({.pooled_share = 0.0});
  for (Step step = 0; step < 30; ++step) {
    StepTimes times = observed(step, std::vector<double>{2.0, 1.0, 1.0});
    times.known[0] = Known::kLonger;
    forecaster.learn(times);
  }
  Forecast out;
  forecaster.forecast(30, first_workers(3), out);
  const auto samples = samples_of(out, 0);
  EXPECT_GE(samples.front(), 2.0F);
  EXPECT_NEAR(quantile_of(samples, 0.5), 2.0 * std::pow(0.5, -0.25), 0.02);
  EXPECT_NEAR(quantile_of(samples, 0.9), 2.0 * std::pow(0.1, -0.25), 0.06);
}

TEST(Ecdf, FollowsASlowDown) {
  EcdfForecaster forecaster({});
  std::vector<double> times(10, 1.0);
  Forecast out;
  for (Step step = 0; step < 60; ++step) {
    times[2] = step < 50 ? 1.0 : 2.0;
    forecaster.learn(observed(step, times));
  }
  forecaster.forecast(60, first_workers(10), out);
  EXPECT_NEAR(quantile_of(samples_of(out, 2), 0.5), 2.0, 0.02);
  EXPECT_NEAR(quantile_of(samples_of(out, 3), 0.5), 1.0, 0.02);
}

TEST(Ecdf, ALateRunTimeReplacesTheBound) {
  std::mt19937_64 random(5);
  EcdfForecaster late({});
  EcdfForecaster full({});
  for (Step step = 0; step < 100; ++step) {
    const auto times = lognormal_times(random, 8, 0.5);
    late.learn(observed(step, times, 1.0));
    full.learn(observed(step, times));
    for (WorkerId worker = 0; worker < 8; ++worker) {
      if (times[worker] > 1.0) late.learn_late(step, worker, times[worker]);
    }
  }
  Forecast one;
  Forecast other;
  late.forecast(100, first_workers(8), one);
  full.forecast(100, first_workers(8), other);
  ASSERT_EQ(one.times.size(), other.times.size());
  for (size_t i = 0; i < one.times.size(); ++i) {
    EXPECT_NEAR(one.times[i], other.times[i], 0.02 * other.times[i]);
  }
}

TEST(Ecdf, WorkersAreIndependentInASample) {
  std::mt19937_64 random(6);
  EcdfForecaster forecaster({.samples = 512});
  for (Step step = 0; step < 40; ++step)
    forecaster.learn(observed(step, lognormal_times(random, 20, 0.5)));
  Forecast out;
  forecaster.forecast(40, first_workers(20), out);
  // Correlations of 512 draws have a deviation of 0.044.
  for (size_t a = 0; a < 20; ++a) {
    for (size_t b = 0; b < a; ++b) {
      double sums[5] = {};
      for (uint32_t k = 0; k < out.samples; ++k) {
        const double x = std::log(double{out.row(k)[a]});
        const double y = std::log(double{out.row(k)[b]});
        sums[0] += x;
        sums[1] += y;
        sums[2] += x * x;
        sums[3] += y * y;
        sums[4] += x * y;
      }
      const double n = out.samples;
      const double covariance = sums[4] / n - sums[0] * sums[1] / (n * n);
      const double variances =
          (sums[2] / n - sums[0] * sums[0] / (n * n)) * (sums[3] / n - sums[1] * sums[1] / (n * n));
      EXPECT_LT(std::abs(covariance / std::sqrt(variances)), 0.22) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace drover

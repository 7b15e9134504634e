// The row must be the expected order statistics of the fit, to the first steps or to the last
// ones.
#include "forecast/elfving.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/test_text.h"
#include "forecast/normal.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

std::vector<double> normal_times(std::mt19937_64& random, size_t workers, double mean,
                                 double deviation) {
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<double> times(workers);
  for (double& time : times) time = normal(random);
  return times;
}

TEST(Elfving, ForecastsExpectedOrderStatistics) {
  // A cluster like the paper's small one.
  std::mt19937_64 random(1);
  ElfvingForecaster forecaster{ElfvingSettings{}};
  for (Step step = 0; step < 20; ++step)
    forecaster.learn(observed(step, normal_times(random, 158, 1.0, 0.1)));
  Forecast out;
  forecaster.forecast(20, first_workers(158), out);
  EXPECT_EQ(out.samples, 1U);
  EXPECT_TRUE(out.sorted);
  EXPECT_NEAR(out.row(0)[157], 1.0 + 0.1 * 2.666, 0.02);
  EXPECT_NEAR(out.row(0)[78], 1.0, 0.01);
  EXPECT_NEAR(out.row(0)[0], 1.0 - 0.1 * 2.666, 0.02);
  // With fewer workers, the extremes are less extreme.
  forecaster.forecast(20, first_workers(10), out);
  EXPECT_NEAR(out.row(0)[9], 1.0 + 0.1 * expected_normal_order_statistic(10, 10), 0.02);
  EXPECT_THAT(forecaster.basis(), mentions(20, 0));
}

TEST(Elfving, IsFittedOnce) {
  std::mt19937_64 random(2);
  ElfvingForecaster once{ElfvingSettings{}};
  ElfvingForecaster online{ElfvingOnlineSettings{}};
  for (Step step = 0; step < 50; ++step) {
    const auto times = observed(step, normal_times(random, 30, step < 20 ? 1.0 : 3.0, 0.1));
    once.learn(times);
    online.learn(times);
  }
  Forecast out;
  once.forecast(50, first_workers(1), out);
  EXPECT_NEAR(out.row(0)[0], 1.0, 0.05);
  online.forecast(50, first_workers(1), out);
  EXPECT_NEAR(out.row(0)[0], 3.0, 0.05);
}

TEST(Elfving, AcceptsCensoringInTheWarmUp) {
  std::mt19937_64 random(3);
  ElfvingForecaster forecaster{ElfvingSettings{}};
  for (Step step = 0; step < 20; ++step) {
    forecaster.learn(observed(step, normal_times(random, 100, 1.0, 0.2), 1.0));
  }
  Forecast out;
  forecaster.forecast(20, first_workers(3), out);
  EXPECT_NEAR(out.row(0)[1], 1.0, 0.03);
  EXPECT_NEAR(out.row(0)[2] - out.row(0)[1], 0.2 * expected_normal_order_statistic(3, 3), 0.03);
  EXPECT_THAT(forecaster.basis(), mentions(20, 50));
}

TEST(ElfvingOnline, IsCorrectUnderCensoring) {
  // Thirty steps, each closed after a random share of the workers.
  std::mt19937_64 random(4);
  ElfvingForecaster forecaster{ElfvingOnlineSettings{}};
  for (Step step = 0; step < 30; ++step) {
    auto times = normal_times(random, 100, 2.0, 0.3);
    auto sorted = times;
    std::sort(sorted.begin(), sorted.end());
    forecaster.learn(observed(step, times, sorted[20 + random() % 60]));
  }
  Forecast out;
  forecaster.forecast(30, first_workers(100), out);
  EXPECT_NEAR(out.row(0)[50], 2.0, 0.05);
  EXPECT_NEAR(out.row(0)[99], 2.0 + 0.3 * 2.5, 0.15);
}

TEST(ElfvingOnline, ALateRunTimeReplacesTheBound) {
  ElfvingForecaster forecaster{ElfvingOnlineSettings{}};
  const std::vector<double> times = {1.0, 1.1, 5.0};
  for (Step step = 0; step < 20; ++step) forecaster.learn(observed(step, times, 1.1));
  for (Step step = 0; step < 20; ++step) forecaster.learn_late(step, 2, 5.0);
  forecaster.learn_late(19, 0, 99.0);  // had arrived: not late
  ElfvingForecaster full{ElfvingOnlineSettings{}};
  for (Step step = 0; step < 20; ++step) full.learn(observed(step, times));
  Forecast out;
  Forecast expected;
  forecaster.forecast(20, first_workers(3), out);
  full.forecast(20, first_workers(3), expected);
  EXPECT_EQ(out.times, expected.times);
}

TEST(ElfvingOnline, ForecastsNothingFasterThanTheFastestRunTime) {
  // Mean 1.9 and deviation 2.7: a normal distribution has the first of ten at -2.3.
  ElfvingForecaster forecaster{ElfvingOnlineSettings{}};
  std::vector<double> times(10, 1.0);
  times[3] = 10.0;
  for (Step step = 0; step < 20; ++step) forecaster.learn(observed(step, times));
  Forecast out;
  forecaster.forecast(20, first_workers(10), out);
  EXPECT_EQ(out.row(0)[0], 1.0F);
}

}  // namespace
}  // namespace drover

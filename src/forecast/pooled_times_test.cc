// The histogram must match the curve of the exact observations to half a percent of time.
#include "forecast/pooled_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace drover {
namespace {

TEST(PooledTimes, MatchesTheExactCurve) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> time(0.0, 0.8);
  for (const double unit : {1e-6, 1.0, 1e6}) {
    PooledTimes pooled(10.0);
    std::vector<Observation> all;
    for (Step step = 0; step < 60; ++step) {
      for (int i = 0; i < 20; ++i) {
        const double x = time(random) * unit;
        const double bound = 2.0 * time(random) * unit;
        const auto observed = static_cast<float>(std::min(x, bound));
        pooled.add(step, observed, x > bound);
        all.push_back({double{observed}, x > bound, std::exp2(static_cast<double>(step) / 10.0)});
      }
    }
    const SurvivalCurve exact = kaplan_meier(all);
    for (double u = 0.01; u < 0.97; u += 0.01) {
      // Between the quantiles a little to either side: steps of the two curves need not coincide.
      EXPECT_GT(pooled.curve().quantile(u), 0.985 * exact.quantile(u - 0.01));
      EXPECT_LT(pooled.curve().quantile(u), 1.015 * exact.quantile(u + 0.01));
    }
  }
}

TEST(PooledTimes, RemovesObservations) {
  PooledTimes one(5.0);
  PooledTimes other(5.0);
  for (Step step = 0; step < 10; ++step) {
    const float time = 1.0F + 0.1F * static_cast<float>(step);
    one.add(step, time, false);
    one.add(step, 1.05F, true);
    other.add(step, time, false);
  }
  for (Step step = 0; step < 10; ++step) one.remove(step, 1.05F, true);
  EXPECT_EQ(one.curve().left_over(), 0.0);
  for (double u = 0.05; u < 1.0; u += 0.05) {
    EXPECT_NEAR(one.curve().quantile(u), other.curve().quantile(u), 1e-6);
  }
}

TEST(PooledTimes, EqualTimesStayExact) {
  PooledTimes pooled(5.0);
  for (Step step = 0; step < 10; ++step) pooled.add(step, 0.7F, false);
  EXPECT_NEAR(pooled.curve().quantile(0.5), double{0.7F}, 1e-12);
}

TEST(PooledTimes, RemembersTheTailOverThousandsOfSteps) {
  PooledTimes pooled(5.0);
  pooled.add(0, 1.0F, false);
  pooled.add(0, 3.0F, false);
  for (Step step = 1; step < 4000; ++step) {
    pooled.add(step, 1.0F, false);
    pooled.add(step, 1.1F, true);
  }
  EXPECT_NEAR(pooled.curve().quantile(0.9), 3.0, 1e-6);
  // Eventually its weight underflows, which must be harmless.
  for (Step step = 4000; step < 40'000; step += 100) {
    pooled.add(step, 1.0F, false);
    pooled.add(step, 1.1F, true);
  }
  EXPECT_NEAR(pooled.curve().survival(1.0), 0.5, 0.01);
  EXPECT_NEAR(pooled.curve().left_over(), 0.5, 0.01);
}

}  // namespace
}  // namespace drover

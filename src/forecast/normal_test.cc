// Quantiles must invert the distribution to the last digits, tails must not underflow, and
// expected order statistics must match sorted draws.
#include "forecast/normal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace drover {
namespace {

TEST(NormalQuantile, MatchesPublishedTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0.0, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-13);
  EXPECT_NEAR(normal_quantile(0.01), -2.326347874040841, 1e-13);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-12);
}

TEST(NormalQuantile, InvertsTheDistribution) {
  for (double z = -30.0; z <= 6.0; z += 0.037) {
    EXPECT_NEAR(normal_quantile(normal_cdf(z)), z, 1e-8 * std::max(1.0, std::abs(z))) << z;
  }
}

TEST(NormalQuantileDeathTest, IsUndefinedAtTheEnds) {
  EXPECT_DEATH(normal_quantile(0.0), "internal error");
  EXPECT_DEATH(normal_quantile(1.0), "internal error");
}

TEST(NormalTail, IsSmoothWhereItsFormulaChanges) {
  for (const double z : {20.0, 24.999999, 25.000001, 30.0}) {
    // The hazard lies between z and z + 1/z, and is the slope of -log tail.
    EXPECT_GT(normal_hazard(z), z);
    EXPECT_LT(normal_hazard(z), z + 1.0 / z);
    const double slope = (log_normal_tail(z + 1e-3) - log_normal_tail(z - 1e-3)) / 2e-3;
    EXPECT_NEAR(normal_hazard(z), -slope, 1e-4) << z;
  }
  EXPECT_NEAR(log_normal_tail(0.0), std::log(0.5), 1e-15);
  EXPECT_TRUE(std::isfinite(log_normal_tail(1e6)));
  EXPECT_NEAR(normal_hazard(1e6), 1e6, 1e-3);
  EXPECT_NEAR(normal_hazard(-40.0), 0.0, 1e-300);
}

TEST(ExpectedNormalOrderStatistic, MatchesPublishedSimulations) {
  EXPECT_NEAR(expected_normal_order_statistic(158, 158), 2.666, 0.0005);
  EXPECT_NEAR(expected_normal_order_statistic(99, 100), 2.143, 0.0005);
  EXPECT_NEAR(expected_normal_order_statistic(1, 1), 0.0, 1e-12);
}

TEST(ExpectedNormalOrderStatistic, IsTheMeanOfSortedDraws) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const uint32_t n : {2U, 5U, 10U, 40U}) {
    const int rounds = 20'000;
    std::vector<double> sum(n, 0.0);
    std::vector<double> draws(n);
    for (int round = 0; round < rounds; ++round) {
      for (double& each : draws) each = normal(random);
      std::sort(draws.begin(), draws.end());
      for (uint32_t j = 0; j < n; ++j) sum[j] += draws[j];
    }
    for (uint32_t j = 1; j <= n; ++j) {
      // Elfving's approximation is good to 0.01 (worst for n = 2); the simulation to 0.025.
      EXPECT_NEAR(expected_normal_order_statistic(j, n), sum[j - 1] / rounds, 0.035)
          << j << " of " << n;
    }
  }
}

TEST(ExpectedNormalOrderStatistic, AscendsAndIsSymmetric) {
  for (const uint32_t n : {1U, 2U, 7U, 158U, 2175U}) {
    for (uint32_t j = 1; j <= n; ++j) {
      const double here = expected_normal_order_statistic(j, n);
      EXPECT_NEAR(here, -expected_normal_order_statistic(n + 1 - j, n), 1e-9);
      if (j > 1) {
        EXPECT_GT(here, expected_normal_order_statistic(j - 1, n));
      }
    }
  }
}

}  // namespace
}  // namespace drover

// The fit must recover the distribution although much of the data is censored, and must handle
// data without a maximum of the likelihood.
#include "forecast/censored_normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "forecast/normal.h"

namespace drover {
namespace {

TEST(FitCensoredNormal, IsMeanAndDeviationWithoutCensoring) {
  const auto fit = fit_censored_normal(std::vector<Measured>{{1.0}, {2.0}, {3.0}, {6.0}});
  ASSERT_TRUE(fit);
  EXPECT_DOUBLE_EQ(fit->mean, 3.0);
  EXPECT_DOUBLE_EQ(fit->deviation, std::sqrt((4.0 + 1.0 + 0.0 + 9.0) / 4.0));
}

TEST(FitCensoredNormal, RecoversTheDistributionFromRandomBounds) {
  std::mt19937_64 random(7);
  for (const double unit : {1e-6, 1.0, 1e6}) {
    for (const double cut_at : {0.5, 0.0, -0.7}) {  // about 35, 50, 70 % censored
      SCOPED_TRACE("unit " + std::to_string(unit) + " cut at " + std::to_string(cut_at));
      std::normal_distribution<double> value(5.0, 2.0);
      std::normal_distribution<double> bound(5.0 + 2.0 * cut_at, 1.0);
      std::vector<Measured> data;
      double naive = 0.0;
      for (int i = 0; i < 5000; ++i) {
        const double x = value(random);
        const double b = bound(random);
        data.push_back({unit * std::min(x, b), x > b});
        naive += unit * std::min(x, b) / 5000;
      }
      const auto fit = fit_censored_normal(data);
      ASSERT_TRUE(fit);
      EXPECT_NEAR(fit->mean, 5.0 * unit, 0.2 * unit);
      EXPECT_NEAR(fit->deviation, 2.0 * unit, 0.2 * unit);
      EXPECT_LT(naive, 4.7 * unit);
    }
  }
}

// The likelihood on a grid, computed from the definition.
double slow_likelihood(const std::vector<Measured>& data, double mean, double deviation) {
  double sum = 0.0;
  for (const Measured& each : data) {
    const double z = (each.value - mean) / deviation;
    sum += each.censored ? log_normal_tail(z) : -0.5 * z * z - std::log(deviation);
  }
  return sum;
}

TEST(FitCensoredNormal, HasNoBetterNeighbour) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<Measured> data;
    const size_t size = 3 + random() % 20;
    for (size_t i = 0; i < size; ++i) data.push_back({normal(random), i >= 2 && random() % 2 == 0});
    const auto fit = fit_censored_normal(data);
    ASSERT_TRUE(fit);
    ASSERT_GT(fit->deviation, 0.0);
    const double best = slow_likelihood(data, fit->mean, fit->deviation);
    for (const double shift : {-0.01, 0.0, 0.01}) {
      for (const double factor : {0.99, 1.0, 1.01}) {
        EXPECT_GE(best + 1e-7, slow_likelihood(data, fit->mean + shift * fit->deviation,
                                               fit->deviation * factor));
      }
    }
  }
}

TEST(FitCensoredNormal, UsesCountsAsRepetitions) {
  using Data = std::vector<Measured>;
  const auto once = fit_censored_normal(
      Data{{1.0}, {1.0}, {2.0}, {3.5}, {2.5, true}, {2.5, true}, {2.5, true}, {0.5, true}});
  const auto counted =
      fit_censored_normal(Data{{1.0, false, 2.0}, {2.0}, {3.5}, {2.5, true, 3.0}, {0.5, true}});
  ASSERT_TRUE(once && counted);
  EXPECT_NEAR(once->mean, counted->mean, 1e-9);
  EXPECT_NEAR(once->deviation, counted->deviation, 1e-9);
}

TEST(FitCensoredNormal, HasNoResultFromBoundsAlone) {
  EXPECT_FALSE(fit_censored_normal({}));
  EXPECT_FALSE(fit_censored_normal(std::vector<Measured>{{1.0, true}, {2.0, true}}));
}

TEST(FitCensoredNormal, ToleratesEqualValues) {
  using Data = std::vector<Measured>;
  for (const double unit : {1e-6, 1.0, 1e6}) {
    const auto one = fit_censored_normal(Data{{unit}});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->mean, unit);
    EXPECT_EQ(one->deviation, 0.0);
    // Censored at the common value of all others, as by a cutoff among equal run-times.
    const auto equal = fit_censored_normal(Data{{unit}, {unit}, {unit, true}});
    ASSERT_TRUE(equal);
    EXPECT_NEAR(equal->mean, unit, 1e-6 * unit);
    EXPECT_LT(equal->deviation, 1e-6 * unit);
    // Bounds below are consistent with it; bounds above require a deviation.
    const auto below = fit_censored_normal(Data{{unit}, {unit}, {0.5 * unit, true}});
    ASSERT_TRUE(below);
    EXPECT_NEAR(below->mean, unit, 1e-3 * unit);
    EXPECT_LT(below->deviation, 1e-3 * unit);
    const auto above = fit_censored_normal(Data{{unit}, {unit}, {2.0 * unit, true}});
    ASSERT_TRUE(above);
    EXPECT_GT(above->mean, unit);
    EXPECT_GT(above->deviation, 0.1 * unit);
    EXPECT_LT(above->deviation, 10.0 * unit);
  }
}

}  // namespace
}  // namespace drover

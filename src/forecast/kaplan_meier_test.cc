// The curve must match a textbook example, and Efron's redistribution of the probability of
// censored observations.
#include "forecast/kaplan_meier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace drover {
namespace {

// Weeks in remission of leukaemia patients under 6-MP (Freireich et al. 1963); + is censored.
std::vector<Observation> remissions() {
  std::vector<Observation> all;
  for (const double t : {6, 6, 6, 7, 10, 13, 16, 22, 23}) all.push_back({t, false, 1.0});
  for (const double t : {6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35})
    all.push_back({t, true, 1.0});
  return all;
}

TEST(KaplanMeier, MatchesATextbookExample) {
  const SurvivalCurve curve = kaplan_meier(remissions());
  EXPECT_EQ(curve.survival(5.9), 1.0);
  EXPECT_NEAR(curve.survival(6), 0.857, 0.0005);
  EXPECT_NEAR(curve.survival(7), 0.807, 0.0005);
  EXPECT_NEAR(curve.survival(9.5), 0.807, 0.0005);
  EXPECT_NEAR(curve.survival(10), 0.753, 0.0005);
  EXPECT_NEAR(curve.survival(13), 0.690, 0.0005);
  EXPECT_NEAR(curve.survival(16), 0.627, 0.0005);
  EXPECT_NEAR(curve.survival(22), 0.538, 0.0005);
  EXPECT_NEAR(curve.survival(23), 0.448, 0.0005);
  EXPECT_NEAR(curve.survival(100), 0.448, 0.0005);
  EXPECT_NEAR(curve.left_over(), 0.448, 0.0005);
  EXPECT_EQ(curve.last(), 35.0);
}

TEST(KaplanMeier, HasQuantiles) {
  const SurvivalCurve curve = kaplan_meier(remissions());
  EXPECT_EQ(curve.quantile(0.0), 6.0);
  EXPECT_EQ(curve.quantile(0.14), 6.0);
  EXPECT_EQ(curve.quantile(0.15), 7.0);
  EXPECT_EQ(curve.quantile(0.5), 23.0);  // the median published with this table
  EXPECT_TRUE(std::isinf(curve.quantile(0.6)));
}

TEST(KaplanMeier, IsTheEmpiricalDistributionWithoutCensoring) {
  const SurvivalCurve curve = kaplan_meier({{3.0}, {1.0}, {2.0}, {2.0}});
  EXPECT_EQ(curve.quantile(0.25), 1.0);
  EXPECT_EQ(curve.quantile(0.26), 2.0);
  EXPECT_EQ(curve.quantile(0.75), 2.0);
  EXPECT_EQ(curve.quantile(1.0), 3.0);
  EXPECT_EQ(curve.left_over(), 0.0);
}

TEST(KaplanMeier, HandlesNoDataAndBoundsAlone) {
  const SurvivalCurve nothing = kaplan_meier({});
  EXPECT_TRUE(nothing.empty());
  EXPECT_EQ(nothing.left_over(), 1.0);
  EXPECT_TRUE(std::isinf(nothing.quantile(0.5)));
  const SurvivalCurve bounds = kaplan_meier({{2.0, true}, {1.0, true}});
  EXPECT_FALSE(bounds.empty());
  EXPECT_EQ(bounds.left_over(), 1.0);
  EXPECT_EQ(bounds.last(), 2.0);
}

// Efron's construction of the same curve: each observation has its weight; a censored one passes
// its weight to the later ones, in proportion. Quadratic, and without a product.
double slow_survival(std::vector<Observation> all, double t) {
  std::sort(all.begin(), all.end(), [](const Observation& a, const Observation& b) {
    return a.time != b.time ? a.time < b.time : a.censored < b.censored;
  });
  double total = 0.0;
  for (const Observation& each : all) total += each.weight;
  std::vector<double> mass;
  for (const Observation& each : all) mass.push_back(each.weight / total);
  double beyond_all = 0.0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].censored) continue;
    double later = 0.0;
    for (size_t k = i + 1; k < all.size(); ++k) later += mass[k];
    if (later > 0.0) {
      for (size_t k = i + 1; k < all.size(); ++k) mass[k] *= 1.0 + mass[i] / later;
    } else {
      beyond_all += mass[i];
    }
    mass[i] = 0.0;
  }
  double survival = beyond_all;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].time > t) survival += mass[i];
  }
  return survival;
}

TEST(KaplanMeier, MatchesEfronsRedistribution) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::vector<Observation> all;
    const size_t size = 1 + random() % 30;
    for (size_t i = 0; i < size; ++i) {
      const auto time = static_cast<double>(1 + random() % 12);  // many ties
      const double weight = std::exp2(-static_cast<double>(random() % 40));
      all.push_back({time, random() % 2 == 0, weight});
    }
    const SurvivalCurve curve = kaplan_meier(all);
    for (double t = 0.5; t < 14.0; t += 0.5) {
      ASSERT_NEAR(curve.survival(t), slow_survival(all, t), 1e-9) << "at " << t;
    }
    for (size_t i = 0; i < curve.times().size(); ++i) {
      ASSERT_EQ(curve.quantile(curve.cumulated()[i]), curve.times()[i]);
    }
  }
}

TEST(KaplanMeier, TinyWeightsFormTheTail) {
  // Only two run-times are beyond the bound, with weights that halved a thousand times.
  const double old = 1e-300;
  const SurvivalCurve curve =
      kaplan_meier({{1.0, true}, {1.0, true}, {3.0, false, old}, {4.0, false, old}});
  EXPECT_EQ(curve.quantile(0.4), 3.0);
  EXPECT_EQ(curve.quantile(0.6), 4.0);
  EXPECT_EQ(curve.left_over(), 0.0);
}

}  // namespace
}  // namespace drover

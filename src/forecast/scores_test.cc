#include "forecast/scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random_draw.h"
#include "forecast/normal.h"

namespace drover {
namespace {

double standard_normal(uint64_t i, uint64_t j) {
  return normal_quantile(std::clamp(unit_interval(draw({3, i, j})), 1e-12, 1.0 - 1e-12));
}

std::vector<float> lognormal(uint64_t key, size_t count, double mean, double deviation) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i] = static_cast<float>(std::exp(mean + deviation * standard_normal(key, i)));
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

// Computed directly from the definition.
double slow_crps(const std::vector<float>& samples, double observed, bool censored) {
  const auto log_of = [&](double x) { return std::log(censored ? std::min(x, observed) : x); };
  double distance = 0.0;
  double spread = 0.0;
  for (size_t i = 0; i < samples.size(); ++i) {
    distance += std::abs(log_of(static_cast<double>(samples[i])) - std::log(observed));
    for (size_t j = 0; j < samples.size(); ++j) {
      if (i == j) continue;
      spread += std::abs(log_of(static_cast<double>(samples[i])) -
                         log_of(static_cast<double>(samples[j])));
    }
  }
  const auto n = static_cast<double>(samples.size());
  return distance / n - spread / (2.0 * n * (n - 1.0));
}

TEST(Crps, MatchesItsDefinition) {
  for (uint64_t key = 0; key < 20; ++key) {
    const std::vector<float> samples = lognormal(key, 7 + key, 0.5, 0.4);
    for (const double observed : {0.3, 1.0, 1.7, 9.0}) {
      for (const bool censored : {false, true}) {
        EXPECT_NEAR(crps(samples, observed, censored), slow_crps(samples, observed, censored),
                    1e-9);
      }
    }
  }
}

TEST(Crps, OfANormalForecastHasTheKnownValue) {
  // Gneiting & Raftery: CRPS(N(0, 1), y) = y (2 Phi(y) - 1) + 2 phi(y) - 1 / sqrt(pi).
  const std::vector<float> samples = lognormal(1, 200'000, 0.0, 1.0);
  for (const double y : {-1.0, 0.0, 0.7, 2.0}) {
    const double known = y * (2.0 * normal_cdf(y) - 1.0) + 2.0 * normal_density(y) -
                         1.0 / std::sqrt(std::acos(-1.0));
    EXPECT_NEAR(crps(samples, std::exp(y), false), known, 0.01);
  }
}

TEST(Crps, PrefersTheTruthUnderHeavyCensoring) {
  // The truth is N(0, 0.3). Everything beyond 0.2 is censored.
  double truth = 0.0;
  double too_quick = 0.0;
  double too_wide = 0.0;
  const std::vector<float> right = lognormal(2, 500, 0.0, 0.3);
  const std::vector<float> quick = lognormal(2, 500, -0.2, 0.3);
  const std::vector<float> wide = lognormal(2, 500, 0.0, 0.8);
  for (uint64_t i = 0; i < 4000; ++i) {
    const double y = 0.3 * standard_normal(77, i);
    const bool censored = y > 0.2;
    const double observed = std::exp(std::min(y, 0.2));
    truth += crps(right, observed, censored);
    too_quick += crps(quick, observed, censored);
    too_wide += crps(wide, observed, censored);
  }
  EXPECT_LT(truth, 0.9 * too_quick);
  EXPECT_LT(truth, 0.9 * too_wide);
}

TEST(Crps, SamplesBeyondTheBoundAreEquivalent) {
  EXPECT_DOUBLE_EQ(crps(std::vector{1.0F, 2.0F, 3.0F}, 1.5, true),
                   crps(std::vector{1.0F, 20.0F, 300.0F}, 1.5, true));
}

}  // namespace
}  // namespace drover

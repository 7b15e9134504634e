// Noise estimates are unbiased for any distribution of samples over workers. The smoothed noise
// scale is 0 until enough steps were measured.
#include "core/gradient_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Evaluates the formulas of the header on the gradients.
NoiseEstimate estimate_of(const std::vector<std::vector<double>>& gradients,
                          const std::vector<uint64_t>& samples) {
  double weighted_squares = 0.0;
  uint64_t all = 0;
  std::vector<double> sum(gradients[0].size(), 0.0);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto weight = static_cast<double>(samples[i]);
    for (size_t d = 0; d < sum.size(); ++d) {
      weighted_squares += weight * gradients[i][d] * gradients[i][d];
      sum[d] += weight * gradients[i][d];
    }
    all += samples[i];
  }
  double mean_square = 0.0;
  for (const double each : sum) mean_square += each * each;
  mean_square /= static_cast<double>(all) * static_cast<double>(all);
  return estimate_noise(weighted_squares, mean_square, all,
                        static_cast<uint32_t>(gradients.size()));
}

TEST(GradientNoise, OfEqualGradientsIsZero) {
  const NoiseEstimate estimate = estimate_of({{3.0, 4.0}, {3.0, 4.0}}, {8, 8});
  EXPECT_DOUBLE_EQ(estimate.noise, 0.0);
  EXPECT_DOUBLE_EQ(estimate.signal, 25.0);
}

TEST(GradientNoise, OfTwoOppositeGradientsIsAllOfTheirLength) {
  // Of one sample each, +1 and -1: A = 1, B = 0, so noise = 2 and signal = -1.
  const NoiseEstimate estimate = estimate_of({{1.0}, {-1.0}}, {1, 1});
  EXPECT_DOUBLE_EQ(estimate.noise, 2.0);
  EXPECT_DOUBLE_EQ(estimate.signal, -1.0) << "without bias, it may be negative";
}

TEST(GradientNoise, WithUnequalSamplesMatchesACalculationByHand) {
  // m = 1 and 3, g = 4 and 0: A = 4, B = 1, M = 4: noise = (4 - 1) 4 / 1, signal = 1 - 12/4.
  const NoiseEstimate estimate = estimate_of({{4.0}, {0.0}}, {1, 3});
  EXPECT_DOUBLE_EQ(estimate.noise, 12.0);
  EXPECT_DOUBLE_EQ(estimate.signal, -2.0);
}

TEST(GradientNoise, IsUnknownWithFewerThanTwoGradientsOrIfSquaresOverflow) {
  for (const NoiseEstimate& estimate :
       {estimate_noise(0.0, 0.0, 0, 0), estimate_noise(9.0, 9.0, 1, 1),
        estimate_noise(1.0, kInfinity, 2, 2)}) {
    EXPECT_TRUE(std::isnan(estimate.noise));
    EXPECT_TRUE(std::isnan(estimate.signal));
  }
}

TEST(GradientNoise, OfSeveralBlocksIsUnknownIfThatOfOneBlockIs) {
  NoiseEstimate sum{1.0, 2.0};
  sum += {3.0, 4.0};
  EXPECT_EQ(sum.signal, 4.0);
  EXPECT_EQ(sum.noise, 6.0);
  sum += estimate_noise(0.0, 0.0, 0, 1);
  EXPECT_TRUE(std::isnan(sum.noise));
}

// Standard normal, by Box and Muller's transform of two uniform draws.
double normal_draw(std::initializer_list<uint64_t> key) {
  const uint64_t bits = draw(key);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit_interval(bits)));
  return radius * std::cos(2.0 * M_PI * unit_interval(mix_bits(bits)));
}

// Normal gradients with a known G and a diagonal Sigma: the mean of many estimates is within four
// standard errors of the true value.
TEST(GradientNoise, IsUnbiasedForAnyNumbersOfSamples) {
  for (const std::vector<uint64_t>& samples :
       {std::vector<uint64_t>{16, 16, 16}, std::vector<uint64_t>{1, 64},
        std::vector<uint64_t>{5, 1, 1, 30, 8, 2}}) {
    constexpr size_t kDimensions = 4;
    constexpr int kSteps = 20'000;
    const std::vector<double> truth = {0.5, -0.2, 0.0, 1.0};
    const std::vector<double> deviation = {1.0, 2.0, 3.0, 0.5};
    double signal = 0.0;
    double noise = 0.0;
    for (size_t d = 0; d < kDimensions; ++d) {
      signal += truth[d] * truth[d];
      noise += deviation[d] * deviation[d];
    }
    double sums[2] = {0.0, 0.0};
    double squares[2] = {0.0, 0.0};
    for (uint64_t step = 0; step < kSteps; ++step) {
      std::vector<std::vector<double>> gradients;
      for (uint64_t i = 0; i < samples.size(); ++i) {
        std::vector<double>& gradient = gradients.emplace_back(kDimensions);
        for (size_t d = 0; d < kDimensions; ++d) {
          gradient[d] = truth[d] + deviation[d] / std::sqrt(static_cast<double>(samples[i])) *
                                       normal_draw({samples.size(), samples[0], step, i, d});
        }
      }
      const NoiseEstimate estimate = estimate_of(gradients, samples);
      const double values[2] = {estimate.signal, estimate.noise};
      for (int k = 0; k < 2; ++k) {
        sums[k] += values[k];
        squares[k] += values[k] * values[k];
      }
    }
    for (int k = 0; k < 2; ++k) {
      const double mean = sums[k] / kSteps;
      const double error = std::sqrt((squares[k] / kSteps - mean * mean) / kSteps);
      EXPECT_NEAR(mean, k == 0 ? signal : noise, 4.0 * error) << (k == 0 ? "signal" : "noise");
      EXPECT_LT(error, 0.1 * noise) << "otherwise the test has no power";
    }
  }
}

TEST(NoiseScale, IsKnownAfterTenMeasuredSteps) {
  NoiseScale scale;
  for (int step = 0; step < 9; ++step) {
    scale.learn({.signal = 2.0, .noise = 10.0});
    scale.learn({.signal = kNan, .noise = kNan});  // one gradient: not measurable
    EXPECT_EQ(scale.value(), 0.0);
  }
  scale.learn({.signal = 2.0, .noise = 10.0});
  EXPECT_DOUBLE_EQ(scale.value(), 5.0);
}

TEST(NoiseScale, IsUnknownWhileTheSignalIsNotPositive) {
  NoiseScale scale;
  for (int step = 0; step < 30; ++step) scale.learn({.signal = -1.0, .noise = 10.0});
  EXPECT_EQ(scale.value(), 0.0);
  for (int step = 0; step < 60; ++step) scale.learn({.signal = 1.0, .noise = 10.0});
  EXPECT_GT(scale.value(), 10.0) << "earlier steps still count";
  NoiseScale calm;
  for (int step = 0; step < 30; ++step) calm.learn({.signal = 1.0, .noise = 0.0});
  EXPECT_EQ(calm.value(), 0.0);
}

TEST(NoiseScale, HasAHalfLifeOfTwentySteps) {
  NoiseScale scale;
  for (int step = 0; step < 2000; ++step) scale.learn({.signal = 1.0, .noise = 8.0});
  for (int step = 0; step < 20; ++step) scale.learn({.signal = 1.0, .noise = 4.0});
  EXPECT_NEAR(scale.value(), 6.0, 1e-9);
}

TEST(NoiseScale, IsTheRatioOfMeansNotTheMeanOfRatios) {
  NoiseScale scale;
  for (int step = 0; step < 2000; ++step)
    scale.learn({.signal = step % 2 == 0 ? 3.0 : -1.0, .noise = 5.0});
  EXPECT_NEAR(scale.value(), 5.0, 0.2);
}

}  // namespace
}  // namespace drover

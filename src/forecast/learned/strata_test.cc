#include "forecast/learned/strata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace drover {
namespace {

TEST(Strata, NoTwoSamplesShareAStratum) {
  for (uint32_t column = 0; column < 200; ++column) {
    for (const uint32_t samples : {1U, 2U, 3U, 32U, 64U, 100U, 128U, 1000U}) {
      const Order order = state_order(1, 2, column);
      const uint32_t bits = strata_bits(samples);
      const auto strata = static_cast<float>(1U << bits);
      EXPECT_LT(strata, 2.0F * static_cast<float>(samples));
      std::set<uint32_t> seen;
      for (uint32_t k = 0; k < samples; ++k) {
        const float u = uniform(order, k, bits);
        EXPECT_GT(u, 0.0F);
        EXPECT_LT(u, 1.0F);
        seen.insert(static_cast<uint32_t>(u * strata));
      }
      EXPECT_EQ(seen.size(), samples);
    }
  }
}

// Random orders of 64 have a mean correlation of 0 and a mean squared one of 1/63.
TEST(Strata, ColumnsAreIndependent) {
  constexpr uint32_t kSamples = 64;
  constexpr uint32_t kColumns = 300;
  std::vector<std::vector<double>> columns;
  for (uint32_t column = 0; column < kColumns; ++column) {
    columns.emplace_back();
    const Order order = worker_order(5, 6, column);
    for (uint32_t k = 0; k < kSamples; ++k) columns.back().push_back(uniform(order, k, 6) - 0.5);
  }
  double sum = 0.0;
  double squares = 0.0;
  double pairs = 0.0;
  for (size_t i = 0; i < kColumns; ++i) {
    for (size_t j = 0; j < i; ++j) {
      double product = 0.0;
      for (size_t k = 0; k < kSamples; ++k) product += columns[i][k] * columns[j][k];
      const double correlation = product / kSamples * 12.0;
      sum += correlation;
      squares += correlation * correlation;
      pairs += 1.0;
    }
  }
  EXPECT_NEAR(sum / pairs, 0.0, 0.005);
  EXPECT_NEAR(squares / pairs, 1.0 / 63.0, 0.005);
}

// In any one sample, the columns are spread like uniform numbers.
TEST(Strata, EverySampleIsUniformOverTheColumns) {
  for (const uint32_t k : {0U, 1U, 17U, 63U}) {
    double mean = 0.0;
    double square = 0.0;
    constexpr uint32_t kColumns = 20000;
    for (uint32_t column = 0; column < kColumns; ++column) {
      const double u = uniform(worker_order(9, 1, column), k, 6);
      mean += u / kColumns;
      square += u * u / kColumns;
    }
    EXPECT_NEAR(mean, 0.5, 0.01) << k;
    EXPECT_NEAR(square, 1.0 / 3.0, 0.01) << k;
  }
}

TEST(Strata, DependOnSeedStepAndColumn) {
  const auto first = [](uint64_t seed, Step step, WorkerId worker) {
    return worker_order(seed, step, worker).jitter;
  };
  EXPECT_EQ(first(1, 2, 3), first(1, 2, 3));
  EXPECT_NE(first(1, 2, 3), first(2, 2, 3));
  EXPECT_NE(first(1, 2, 3), first(1, 3, 3));
  EXPECT_NE(first(1, 2, 3), first(1, 2, 4));
  EXPECT_NE(first(1, 2, 3), state_order(1, 2, 3).jitter);
}

}  // namespace
}  // namespace drover

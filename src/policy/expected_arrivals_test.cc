// The summary matches the forecast, at ranks spread over all of them.
#include "policy/expected_arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace drover {
namespace {

Forecast random_forecast(std::mt19937_64& random, uint32_t samples, uint32_t workers) {
  std::exponential_distribution<float> time;
  Forecast forecast;
  forecast.resize(samples, workers);
  for (uint32_t k = 0; k < samples; ++k) {
    const auto row = forecast.row(k);
    for (float& each : row) each = 1.0F + time(random);
    std::sort(row.begin(), row.end());
  }
  forecast.sorted = true;
  return forecast;
}

TEST(ExpectedArrivals, AreMeansAndTenthsOfTheOrderStatistics) {
  std::mt19937_64 random(1);
  for (const uint32_t workers : {1u, 2u, 4u, 24u, 25u, 158u, 2175u}) {
    const Forecast forecast = random_forecast(random, 101, workers);
    const auto expected = expected_arrivals(forecast);
    ASSERT_EQ(expected.size(), std::min(workers, kExpectedRanksMax));
    EXPECT_EQ(expected.front().rank, 1u);
    EXPECT_EQ(expected.back().rank, workers);
    for (size_t i = 0; i < expected.size(); ++i) {
      const ExpectedArrival& each = expected[i];
      if (i > 0) {
        ASSERT_GT(each.rank, expected[i - 1].rank);
        EXPECT_GE(each.mean, expected[i - 1].mean);
      }
      std::vector<float> column;
      double sum = 0.0;
      for (uint32_t k = 0; k < 101; ++k) {
        column.push_back(forecast.row(k)[each.rank - 1]);
        sum += static_cast<double>(column.back());
      }
      std::sort(column.begin(), column.end());
      EXPECT_FLOAT_EQ(each.mean, static_cast<float>(sum / 101));
      EXPECT_EQ(each.low, column[10]);
      EXPECT_EQ(each.high, column[90]);
    }
  }
}

}  // namespace
}  // namespace drover

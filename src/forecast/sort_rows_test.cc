// Rows of any length and range must be sorted as by std::sort.
#include "forecast/sort_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace drover {
namespace {

TEST(SortRows, AgreesWithStdSort) {
  std::mt19937_64 random(5);
  for (const uint32_t workers : {1U, 2U, 10U, 63U, 64U, 65U, 158U, 500U, 2175U, 5000U}) {
    for (const double spread : {0.0, 1e-6, 0.3, 3.0, 60.0}) {  // of the logarithm
      SCOPED_TRACE(std::to_string(workers) + " workers, spread " + std::to_string(spread));
      Forecast forecast;
      forecast.resize(3, workers);
      std::normal_distribution<double> normal;
      for (float& time : forecast.times) {
        time = static_cast<float>(std::exp(std::clamp(spread * normal(random), -80.0, 80.0)));
      }
      forecast.times.front() = std::numeric_limits<float>::min();
      forecast.times.back() = std::numeric_limits<float>::max();
      Forecast expected = forecast;
      for (uint32_t k = 0; k < 3; ++k) {
        const auto row = expected.row(k);
        std::sort(row.begin(), row.end());
      }
      sort_rows(forecast);
      EXPECT_TRUE(forecast.sorted);
      ASSERT_EQ(forecast.times, expected.times);
    }
  }
}

// Rows that are hard for a sort by the upper bits.
TEST(SortRows, AgreesWithStdSortForNearlyEqualValues) {
  std::mt19937_64 random(6);
  for (const uint32_t workers : {64U, 100U, 500U, 3000U}) {
    for (const float outlier : {1.0F, 10.0F, 1e30F}) {
      Forecast forecast;
      forecast.resize(2, workers);
      for (float& time : forecast.times) {
        time = 1.0F + static_cast<float>(random() % 1000) * 0x1.0p-23F;
      }
      forecast.times[workers / 2] = outlier;
      Forecast expected = forecast;
      for (uint32_t k = 0; k < 2; ++k) std::sort(expected.row(k).begin(), expected.row(k).end());
      sort_rows(forecast);
      ASSERT_EQ(forecast.times, expected.times) << workers << " " << outlier;
    }
  }
}

TEST(SortRows, LeavesSortedForecastsAlone) {
  Forecast forecast;
  forecast.resize(1, 2);
  forecast.times = {2.0F, 1.0F};
  forecast.sorted = true;  // as the forecaster says
  sort_rows(forecast);
  EXPECT_EQ(forecast.times, (std::vector<float>{2.0F, 1.0F}));
}

TEST(SortRows, AcceptsNoWorkers) {
  Forecast forecast;
  sort_rows(forecast);
  EXPECT_TRUE(forecast.sorted);
}

TEST(SortRowsDeathTest, RefusesInvalidRunTimes) {
  Forecast forecast;
  forecast.resize(1, 200);
  std::fill(forecast.times.begin(), forecast.times.end(), 1.0F);
  forecast.times[7] = -1.0F;
  EXPECT_DEATH(sort_rows(forecast), "internal error");
  forecast.times[7] = std::nanf("");
  EXPECT_DEATH(sort_rows(forecast), "internal error");
}

}  // namespace
}  // namespace drover

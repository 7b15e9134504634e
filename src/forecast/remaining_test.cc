#include "forecast/remaining.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

double unit_draw(uint64_t seed, uint64_t a, uint64_t b = 0) {
  return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kForecast), a, b}));
}

Forecast forecast_of(const std::vector<std::vector<float>>& rows) {
  Forecast forecast;
  forecast.resize(static_cast<uint32_t>(rows.size()), static_cast<uint32_t>(rows.front().size()));
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    std::copy(rows[k].begin(), rows[k].end(), forecast.row(k).begin());
  }
  return forecast;
}

Remaining remaining_of(const Forecast& forecast, const std::vector<bool>& arrived, double now,
                       uint64_t key = 1) {
  Remaining remaining;
  remaining.start(forecast);
  remaining.condition(arrived, now, DrawStream(key));
  return remaining;
}

// Workers of different speeds that are sometimes several times slower.
Forecast random_forecast(uint64_t seed, uint32_t samples, uint32_t workers) {
  Forecast forecast;
  forecast.resize(samples, workers);
  for (uint32_t k = 0; k < samples; ++k) {
    for (uint32_t i = 0; i < workers; ++i) {
      const double speed = 0.5 + 2.0 * unit_draw(seed, i, 1);
      const double time = 0.2 - std::log(1.0 - unit_draw(seed, k, i + 2));
      forecast.row(k)[i] = static_cast<float>(speed * time);
    }
  }
  return forecast;
}

// The missing workers are exactly those later than now in the row.
void expect_unchanged(const Remaining& remaining, const Forecast& forecast) {
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    for (size_t j = 0; j < remaining.missing().size(); ++j) {
      EXPECT_EQ(remaining.row(k)[j], forecast.row(k)[remaining.missing()[j]]);
    }
  }
}

TEST(Remaining, EqualsTheForecastAtTheStart) {
  const Forecast forecast = forecast_of({{1.0F, 2.0F, 3.0F}, {2.0F, 1.5F, 4.0F}});
  const Remaining remaining = remaining_of(forecast, {false, false, false}, 0.5);
  EXPECT_EQ(remaining.workers(), 3u);
  ASSERT_EQ(remaining.samples(), 2u);
  ASSERT_EQ(remaining.missing().size(), 3u);
  expect_unchanged(remaining, forecast);
  EXPECT_DOUBLE_EQ(remaining.weights()[0], 0.5);
  EXPECT_DOUBLE_EQ(remaining.weights()[1], 0.5);
}

TEST(Remaining, ArrivedWorkersAreNotMissing) {
  const Forecast forecast = forecast_of({{1.0F, 2.0F, 3.0F, 4.0F}});
  const Remaining remaining = remaining_of(forecast, {true, false, true, false}, 1.5);
  ASSERT_EQ(remaining.missing().size(), 2u);
  EXPECT_EQ(remaining.missing()[0], 1u);
  EXPECT_EQ(remaining.missing()[1], 3u);
  expect_unchanged(remaining, forecast);
  EXPECT_TRUE(remaining_of(forecast, {true, true, true, true}, 9.0).missing().empty());
}

TEST(Remaining, AllTimesAreLaterThanNow) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto workers = static_cast<uint32_t>(1 + draw({seed, 1}) % 40);
    const auto samples = static_cast<uint32_t>(1 + draw({seed, 2}) % 300);
    const Forecast forecast = random_forecast(seed, samples, workers);
    // Some values of now equal a time of the forecast, or are between two floats.
    double now = 0.1 + 4.0 * unit_draw(seed, 3);
    if (seed % 3 == 0) now = static_cast<double>(forecast.times[forecast.times.size() / 2]);
    std::vector<bool> arrived(workers);
    for (uint32_t i = 0; i < workers; ++i) arrived[i] = unit_draw(seed, 4, i) < 0.5;
    const Remaining remaining = remaining_of(forecast, arrived, now, seed);
    ASSERT_GE(remaining.samples(), 1u);
    ASSERT_LE(remaining.samples(), samples);
    ASSERT_EQ(remaining.weights().size(), remaining.samples());
    ASSERT_EQ(remaining.missing().size(),
              static_cast<size_t>(std::count(arrived.begin(), arrived.end(), false)));
    ASSERT_TRUE(std::is_sorted(remaining.missing().begin(), remaining.missing().end()));
    for (const uint32_t column : remaining.missing()) EXPECT_FALSE(arrived[column]);
    double sum = 0.0;
    for (uint32_t k = 0; k < remaining.samples(); ++k) {
      EXPECT_GE(remaining.weights()[k], 0.0);
      sum += remaining.weights()[k];
      ASSERT_EQ(remaining.row(k).size(), remaining.missing().size());
      for (const float time : remaining.row(k)) ASSERT_GT(static_cast<double>(time), now);
    }
    EXPECT_NEAR(sum, 1.0, 1e-9);
  }
}

// In half of the samples, the five workers of a node are three times as slow.
Forecast two_states() {
  std::vector<std::vector<float>> rows;
  for (size_t k = 0; k < 20; ++k) {
    std::vector<float> row(10, 1.0F + 0.001F * static_cast<float>(k));
    if (k % 2 == 0) std::fill_n(row.begin(), 5, 3.0F);
    rows.push_back(row);
  }
  return forecast_of(rows);
}

double weight_of_slow(const Remaining& remaining) {
  double sum = 0.0;
  for (uint32_t k = 0; k < remaining.samples(); k += 2) sum += remaining.weights()[k];
  return sum;
}

TEST(Remaining, PrefersSamplesThatMatchTheArrivals) {
  const Forecast forecast = two_states();
  std::vector<bool> arrived(10, false);
  EXPECT_NEAR(weight_of_slow(remaining_of(forecast, arrived, 0.5)), 0.5, 1e-9)
      << "nothing distinguishes the samples yet";
  std::fill(arrived.begin() + 5, arrived.end(), true);
  const double missing = weight_of_slow(remaining_of(forecast, arrived, 1.5));
  EXPECT_GT(missing, 0.7) << "a healthy node would have arrived";
  std::fill(arrived.begin(), arrived.end(), true);
  arrived[9] = false;
  const double here = weight_of_slow(remaining_of(forecast, arrived, 1.5));
  EXPECT_LT(here, 0.3) << "the node has arrived";
  // The more of its workers have arrived, the lower the probability that the node is slow.
  double before = missing;
  for (size_t count = 1; count <= 5; ++count) {
    std::fill(arrived.begin(), arrived.end(), false);
    std::fill(arrived.begin() + 5, arrived.end(), true);
    std::fill_n(arrived.begin(), count, true);
    const double weight = weight_of_slow(remaining_of(forecast, arrived, 1.5));
    EXPECT_LE(weight, before + 1e-9) << count;
    EXPECT_EQ(weight > 0.5, count < 3) << count;
    before = weight;
  }
}

TEST(Remaining, EqualMismatchesHaveEqualWeights) {
  const Remaining remaining = remaining_of(two_states(), std::vector<bool>(10, false), 1.5);
  for (uint32_t k = 2; k < remaining.samples(); ++k) {
    EXPECT_DOUBLE_EQ(remaining.weights()[k], remaining.weights()[k % 2]);
  }
}

TEST(Remaining, ALateWorkerBorrowsTheDelaysOfOthers) {
  // Worker 0 always takes 1. Worker 1 mostly takes 2, and at most 3 times as long.
  std::vector<std::vector<float>> rows(20, {1.0F, 2.0F});
  rows[3][1] = 3.2F;
  rows[9][1] = 4.0F;
  rows[15][1] = 6.0F;
  const Forecast forecast = forecast_of(rows);
  const Remaining late = remaining_of(forecast, {false, true}, 1.7);
  ASSERT_EQ(late.missing().size(), 1u);
  bool twice = false;
  bool thrice = false;
  for (uint32_t k = 0; k < late.samples(); ++k) {
    const float time = late.row(k)[0];
    EXPECT_TRUE(time == 2.0F || time == 3.0F) << time << ": 1.6 times as long is over already";
    twice = twice || time == 2.0F;
    thrice = thrice || time == 3.0F;
  }
  EXPECT_TRUE(twice && thrice) << "each delay of the other worker";
  const Remaining later = remaining_of(forecast, {false, true}, 2.5);
  for (uint32_t k = 0; k < later.samples(); ++k) EXPECT_EQ(later.row(k)[0], 3.0F);
}

TEST(Remaining, AWorkerLaterThanAllSamplesNeverArrives) {
  std::vector<std::vector<float>> rows(20, {1.0F, 2.0F});
  rows[7][1] = 6.0F;
  const Remaining remaining = remaining_of(forecast_of(rows), {false, false}, 3.5);
  for (uint32_t k = 0; k < remaining.samples(); ++k) {
    EXPECT_EQ(remaining.row(k)[0], kNever);
    EXPECT_EQ(remaining.row(k)[1], 6.0F) << "uses its own samples later than now";
  }
}

TEST(Remaining, MostlyUsesAWorkersOwnLateSamples) {
  std::vector<std::vector<float>> rows(64, {1.0F, 5.0F, 9.0F});
  for (size_t k = 0; k < rows.size(); k += 2) rows[k][0] = 2.0F + 0.01F * static_cast<float>(k);
  const Forecast forecast = forecast_of(rows);
  const Remaining remaining = remaining_of(forecast, {false, false, false}, 1.5);
  size_t own = 0;
  for (uint32_t k = 0; k < remaining.samples(); ++k) {
    const float time = remaining.row(k)[0];
    if (k % 2 == 0) {
      EXPECT_EQ(time, forecast.row(k)[0]) << "possible samples do not change";
    }
    own += std::any_of(rows.begin(), rows.end(), [&](auto& row) { return row[0] == time; }) ? 1 : 0;
  }
  EXPECT_GT(own, remaining.samples() / 2);
}

TEST(Remaining, EqualDrawsGiveEqualResults) {
  const Forecast forecast = random_forecast(5, 100, 30);
  std::vector<bool> arrived(30);
  for (size_t i = 0; i < arrived.size(); ++i) arrived[i] = i % 3 == 0;
  const Remaining once = remaining_of(forecast, arrived, 1.5, 7);
  // Independent of earlier steps.
  Remaining again;
  again.start(random_forecast(6, 80, 50));
  again.condition(std::vector<bool>(50, false), 2.0, DrawStream(3));
  again.start(forecast);
  again.condition(std::vector<bool>(30, false), 0.7, DrawStream(4));
  again.condition(arrived, 1.5, DrawStream(7));
  const Remaining other = remaining_of(forecast, arrived, 1.5, 8);
  ASSERT_EQ(again.samples(), once.samples());
  bool differs = false;
  for (uint32_t k = 0; k < once.samples(); ++k) {
    EXPECT_EQ(once.weights()[k], again.weights()[k]);
    EXPECT_TRUE(std::equal(once.row(k).begin(), once.row(k).end(), again.row(k).begin()));
    differs = differs || !std::equal(once.row(k).begin(), once.row(k).end(), other.row(k).begin());
  }
  EXPECT_TRUE(differs) << "random draws replace impossible samples";
}

TEST(Remaining, UsesRowsFromAllPartsOfALargeForecast) {
  // As from several forecasters in groups: 1, 2, 3 or 4 for all workers.
  std::vector<std::vector<float>> rows;
  for (size_t k = 0; k < 1000; ++k) {
    rows.push_back(std::vector<float>(3, 1.0F + std::floor(static_cast<float>(k) / 250.0F)));
  }
  const Remaining remaining = remaining_of(forecast_of(rows), std::vector<bool>(3, false), 0.5);
  for (const float each : {1.0F, 2.0F, 3.0F, 4.0F}) {
    double share = 0.0;
    for (uint32_t k = 0; k < remaining.samples(); ++k) {
      share += remaining.row(k)[0] == each ? remaining.weights()[k] : 0.0;
    }
    EXPECT_NEAR(share, 0.25, 0.05) << each;
  }
}

// Exponential run-times are memoryless: a missing worker's remaining time has the same
// distribution. Workers have different speeds, because each borrows from the others.
TEST(Remaining, ExponentialRunTimesAreExponentialAgain) {
  constexpr uint32_t kWorkers = 600;
  for (const double now : {0.3, 1.0, 2.0}) {
    SCOPED_TRACE(now);
    Forecast forecast;
    forecast.resize(256, kWorkers);
    std::vector<bool> arrived(kWorkers);
    const auto mean = [](uint32_t i) { return 0.5 + unit_draw(1, i, 1); };
    for (uint32_t i = 0; i < kWorkers; ++i) {
      for (uint32_t k = 0; k < forecast.samples; ++k) {
        forecast.row(k)[i] = static_cast<float>(-mean(i) * std::log(1.0 - unit_draw(2, k, i)));
      }
      arrived[i] = -mean(i) * std::log(1.0 - unit_draw(3, i)) <= now;
    }
    const Remaining remaining = remaining_of(forecast, arrived, now, 11);
    // Weighted deciles of what remains, in means.
    std::vector<double> below(9, 0.0);
    double all = 0.0;
    for (uint32_t k = 0; k < remaining.samples(); ++k) {
      for (size_t j = 0; j < remaining.missing().size(); ++j) {
        const double left =
            (static_cast<double>(remaining.row(k)[j]) - now) / mean(remaining.missing()[j]);
        all += remaining.weights()[k];
        for (size_t d = 1; d <= 9; ++d) {
          const double decile = -std::log(1.0 - 0.1 * static_cast<double>(d));
          below[d - 1] += left <= decile ? remaining.weights()[k] : 0.0;
        }
      }
    }
    ASSERT_GT(all, 0.0);
    for (size_t d = 1; d <= 9; ++d) {
      EXPECT_NEAR(below[d - 1] / all, 0.1 * static_cast<double>(d), 0.06) << d;
    }
  }
}

}  // namespace
}  // namespace drover

#include "forecast/learned/common_shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random_draw.h"
#include "forecast/normal.h"

namespace drover {
namespace {

double normal(uint64_t a, uint64_t b) {
  return normal_quantile(std::clamp(unit_interval(draw({11, a, b})), 1e-12, 1.0 - 1e-12));
}

std::vector<float> predicted(uint64_t step, double deviation) {
  std::vector<float> samples(200);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<float>(std::exp(deviation * normal(step, i)));
  }
  return samples;
}

Forecast ones(uint32_t rows) {
  Forecast forecast;
  forecast.resize(rows, 3);
  std::fill(forecast.times.begin(), forecast.times.end(), 1.0F);
  return forecast;
}

TEST(CommonShift, AddsNothingToAForecastWithEnoughVariance) {
  CommonShift shift;
  for (uint64_t step = 0; step < 48; ++step) {
    shift.learn(predicted(step, 0.3), std::exp(0.2 * normal(step, 9999)));
  }
  EXPECT_EQ(shift.missing(), 0.0);
  Forecast forecast = ones(8);
  shift.apply(forecast, 0, 8, DrawStream(1));
  for (const float time : forecast.times) EXPECT_EQ(time, 1.0F);
}

TEST(CommonShift, AddsWhatIsMissingToAllWorkersOfASampleAlike) {
  CommonShift shift;
  for (uint64_t step = 0; step < 48; ++step) {
    shift.learn(predicted(step, 0.05), std::exp(0.5 * normal(step, 9999)));
  }
  EXPECT_GT(shift.missing(), 0.95);
  Forecast forecast = ones(96);
  shift.apply(forecast, 0, 48, DrawStream(1));
  double squares = 0.0;
  for (uint32_t k = 0; k < 48; ++k) {
    EXPECT_EQ(forecast.row(k)[0], forecast.row(k)[1]);
    EXPECT_EQ(forecast.row(k)[0], forecast.row(k)[2]);
    squares += std::pow(std::log(static_cast<double>(forecast.row(k)[0])), 2.0) / 48.0;
  }
  EXPECT_NEAR(std::sqrt(squares), 0.5, 0.12);
  for (uint32_t k = 48; k < 96; ++k) EXPECT_EQ(forecast.row(k)[0], 1.0F) << "outside begin..end";
}

TEST(CommonShift, AddsNothingBeforeItHasSomeSteps) {
  CommonShift shift;
  EXPECT_EQ(shift.missing(), 0.0);
  for (uint64_t step = 0; step < 7; ++step) shift.learn(predicted(step, 0.01), 5.0);
  EXPECT_EQ(shift.missing(), 0.0);
  shift.learn(predicted(7, 0.01), 5.0);
  EXPECT_GT(shift.missing(), 0.9);
  shift.forget();
  EXPECT_EQ(shift.missing(), 0.0);
}

}  // namespace
}  // namespace drover

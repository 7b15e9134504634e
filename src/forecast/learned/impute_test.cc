#include "forecast/learned/impute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "forecast/test_steps.h"

namespace drover {
namespace {

TEST(Impute, DrawsEachSampleBeyondTheBoundAsOften) {
  const std::vector<float> samples = {5.0F, 1.0F, 2.0F, 4.0F, 3.0F};
  DrawStream draws(1);
  std::map<long, int> drawn;
  for (int i = 0; i < 3000; ++i) {
    ++drawn[std::lround(std::exp(impute(samples, std::log(2.5F), draws)))];
  }
  ASSERT_EQ(drawn.size(), 3U);
  for (const long value : {3, 4, 5}) EXPECT_NEAR(drawn[value], 1000, 130) << value;
}

TEST(Impute, AddsALittleToABoundBeyondAllSamples) {
  const std::vector<float> samples = {1.0F, 2.0F};
  DrawStream draws(2);
  double sum = 0.0;
  for (int i = 0; i < 10000; ++i) {
    const float drawn = impute(samples, 3.0F, draws);
    ASSERT_GE(drawn, 3.0F);
    sum += double{drawn} - 3.0;
  }
  EXPECT_NEAR(sum / 10000, 0.1, 0.005);
  EXPECT_GE(impute({}, 3.0F, draws), 3.0F) << "without samples";
}

TEST(Impute, IsNeverBelowTheBound) {
  DrawStream draws(3);
  for (int i = 0; i < 1000; ++i) {
    const auto sample = static_cast<float>(1e-3 + 10.0 * draws.unit());
    const float bound = std::log(sample);
    EXPECT_GE(impute(std::vector{std::nextafter(sample, 0.0F), sample}, bound, draws), bound);
  }
}

TEST(HistoryOf, KeepsKnownRunTimesAndImputesCensoredOnes) {
  std::vector<StepTimes> record;
  for (Step step = 0; step < 30; ++step) {
    const std::vector<double> times = {1.0, 2.0, step % 2 == 0 ? 4.0 : 8.0};
    record.push_back(observed(step, times, step < 20 ? 1e300 : 3.0));
  }
  record[5].known[1] = Known::kNothing;
  const History history = history_of(record, 7);
  ASSERT_EQ(history.steps(), 30U);
  EXPECT_EQ(history.row(5)[1].known, Known::kNothing);
  EXPECT_FLOAT_EQ(history.row(6)[1].log_time, std::log(2.0F));
  for (size_t i = 20; i < 30; ++i) {
    const PastTime& cut = history.row(i)[2];
    EXPECT_EQ(cut.known, Known::kLonger);
    EXPECT_FLOAT_EQ(cut.bound, std::log(3.0F));
    EXPECT_GE(cut.log_time, std::log(3.5F)) << "it always took at least 4";
  }
  const History again = history_of(record, 7);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(history.row(i)[2].log_time, again.row(i)[2].log_time);
  }
}

TEST(HistoryOf, IgnoresInvalidRunTimes) {
  StepTimes times = observed(0, std::vector{1.0, 0.0, std::nan("")});
  times.known = {Known::kLonger, Known::kArrived, Known::kArrived};
  const History history = history_of(std::vector{times}, 1);
  EXPECT_GE(history.row(0)[0].log_time, 0.0F) << "the first step, without earlier data";
  EXPECT_EQ(history.row(0)[1].known, Known::kNothing);
  EXPECT_EQ(history.row(0)[2].known, Known::kNothing);
}

}  // namespace
}  // namespace drover

#include "forecast/learned/imputed_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/test_text.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

constexpr uint64_t kSeed = 1;

float log_of(double seconds) { return static_cast<float>(std::log(seconds)); }

// Every sample of column i is times[i].
Forecast certain(const std::vector<float>& times) {
  Forecast forecast;
  forecast.resize(4, static_cast<uint32_t>(times.size()));
  for (uint32_t k = 0; k < forecast.samples; ++k)
    std::copy(times.begin(), times.end(), forecast.row(k).begin());
  return forecast;
}

TEST(ImputedSteps, DrawsFromTheForecastOfThatWorkerBeyondTheBound) {
  ImputedSteps steps(kSeed, Imputing::kTruncated);
  steps.expect(std::vector<WorkerId>{0, 2}, certain({1.0F, 3.0F}), /*by_worker=*/true);
  const auto row = steps.add({.step = 0,
                              .seconds = {1.1, 9.0, 2.0},
                              .known = {Known::kArrived, Known::kNothing, Known::kLonger}});
  EXPECT_FLOAT_EQ(row[0].log_time, log_of(1.1));
  EXPECT_EQ(row[1].known, Known::kNothing);
  EXPECT_EQ(row[2].known, Known::kLonger);
  EXPECT_FLOAT_EQ(row[2].bound, log_of(2.0));
  EXPECT_FLOAT_EQ(row[2].log_time, log_of(3.0));
  EXPECT_EQ(steps.count(), 1U);
  EXPECT_FLOAT_EQ(steps.history().row(0)[2].log_time, log_of(3.0));
}

TEST(ImputedSteps, AForecastIsUsedForOneStep) {
  ImputedSteps steps(kSeed, Imputing::kTruncated);
  steps.expect(first_workers(1), certain({3.0F}), /*by_worker=*/true);
  steps.add(observed(0, std::vector<double>{1.0}));
  const float log_time = steps.add(observed(1, std::vector<double>{9.0}, 2.0))[0].log_time;
  EXPECT_GT(log_time, log_of(2.0));
  EXPECT_NE(log_time, log_of(3.0)) << "not from the forecast of the step before";
}

TEST(ImputedSteps, DrawsAnyOrderStatisticBeyondTheBound) {
  ImputedSteps steps(kSeed, Imputing::kTruncated);
  steps.expect(first_workers(3), certain({1.0F, 2.0F, 5.0F}), /*by_worker=*/false);
  const auto row = steps.add({.step = 0,
                              .seconds = {3.0, 1.0, 2.0},
                              .known = {Known::kLonger, Known::kArrived, Known::kArrived}});
  EXPECT_FLOAT_EQ(row[0].log_time, log_of(5.0)) << "although column 0 is at 1";
}

TEST(ImputedSteps, UsesTheBoundWithKBound) {
  ImputedSteps steps(kSeed, Imputing::kBound);
  steps.expect(first_workers(1), certain({3.0F}), /*by_worker=*/true);
  EXPECT_FLOAT_EQ(steps.add(observed(0, std::vector<double>{9.0}, 2.0))[0].log_time, log_of(2.0));
}

TEST(ImputedSteps, CorrectsLateRunTimes) {
  ImputedSteps steps(kSeed, Imputing::kTruncated);
  steps.add(observed(0, std::vector<double>{9.0}, 2.0));
  steps.correct(0, 0, log_of(9.0));
  EXPECT_EQ(steps.history().row(0)[0].known, Known::kArrived);
  EXPECT_FLOAT_EQ(steps.history().row(0)[0].log_time, log_of(9.0));
}

TEST(ImputedSteps, KeepsTheWorkersThatAStepDoesNotMention) {
  ImputedSteps steps(kSeed, Imputing::kTruncated);
  steps.add(observed(0, std::vector<double>{1.0, 2.0}));
  EXPECT_EQ(steps.add(observed(1, std::vector<double>{1.0})).size(), 2U);
}

TEST(ImputedSteps, ReportsTheRecentShareOfCensoredRunTimes) {
  ImputedSteps steps(kSeed, Imputing::kTruncated);
  EXPECT_THAT(steps.cut_short_text(), mentions("0 %"));
  steps.add(observed(0, std::vector<double>{1.0, 9.0}, 2.0));
  EXPECT_THAT(steps.cut_short_text(), mentions("50 %"));
  for (Step step = 1; step < 200; ++step) steps.add(observed(step, std::vector<double>{1.0, 1.0}));
  EXPECT_THAT(steps.cut_short_text(), mentions("0 %"));
}

}  // namespace
}  // namespace drover

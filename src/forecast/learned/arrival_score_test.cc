#include "forecast/learned/arrival_score.h"

#include <gtest/gtest.h>

#include <vector>

#include "forecast/scores.h"
#include "forecast/test_steps.h"

namespace drover {
namespace {

TEST(ArrivalScore, ScoresArrivalTimesIndependentOfWorkers) {
  ArrivalScore score;
  const std::vector<WorkerId> workers = {0, 2};
  ASSERT_TRUE(score.read(observed(0, std::vector{3.0, 9.0, 2.0}), workers));
  EXPECT_EQ(score.arrivals()[0], 2.0);
  EXPECT_EQ(score.arrivals()[1], 3.0);
  // Each sample has the right times for the wrong workers, so its arrivals are right.
  EXPECT_NEAR(score.mean_crps(sorted_forecast({{2.0F, 3.0F}, {3.0F, 2.0F}})), 0.0, 1e-6);
  const Forecast off = sorted_forecast({{4.0F, 5.0F}, {5.0F, 6.0F}});
  const double by_hand =
      (crps(std::vector{4.0F, 5.0F}, 2.0, false) + crps(std::vector{5.0F, 6.0F}, 3.0, false)) / 2.0;
  EXPECT_NEAR(score.mean_crps(off), by_hand, 1e-9);
}

TEST(ArrivalScore, RanksBeyondTheCloseCountByTheirBound) {
  ArrivalScore score;
  const std::vector<WorkerId> workers = {0, 1, 2};
  ASSERT_TRUE(score.read(observed(0, std::vector{1.0, 9.0, 2.0}, 4.0), workers));
  EXPECT_EQ(score.arrivals().size(), 2U);
  // Predictions of the third arrival beyond 4 are equivalent.
  EXPECT_NEAR(score.mean_crps(sorted_forecast({{1.0F, 2.0F, 5.0F}, {1.0F, 2.0F, 500.0F}})), 0.0,
              1e-6);
  EXPECT_GT(score.mean_crps(sorted_forecast({{1.0F, 2.0F, 3.0F}, {1.0F, 2.0F, 3.5F}})), 0.01);
}

TEST(ArrivalScore, RefusesAStepThatAWorkerMissed) {
  ArrivalScore score;
  StepTimes times = observed(0, std::vector{1.0, 2.0});
  times.known[1] = Known::kNothing;
  EXPECT_FALSE(score.read(times, std::vector<WorkerId>{0, 1}));
  EXPECT_FALSE(score.read(times, std::vector<WorkerId>{0, 7})) << "unknown worker";
  EXPECT_TRUE(score.read(times, std::vector<WorkerId>{0}));
}

}  // namespace
}  // namespace drover

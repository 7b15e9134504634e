#include "forecast/learned/speed_floor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "forecast/test_steps.h"

namespace drover {
namespace {

// The floor applied to a forecast of nearly zero for each worker.
std::vector<float> floors_of(SpeedFloor& floor, const std::vector<WorkerId>& alive) {
  Forecast forecast;
  forecast.resize(2, static_cast<uint32_t>(alive.size()));
  std::fill(forecast.times.begin(), forecast.times.end(), 1e-6F);
  floor.apply(alive, forecast);
  EXPECT_EQ(std::vector<float>(forecast.row(0).begin(), forecast.row(0).end()),
            std::vector<float>(forecast.row(1).begin(), forecast.row(1).end()));
  return {forecast.row(0).begin(), forecast.row(0).end()};
}

TEST(SpeedFloor, AForecastNeverGoesBelowAWorkersFastestTime) {
  SpeedFloor floor;
  floor.learn(observed(0, std::vector<double>{2.0, 3.0}));
  floor.learn(observed(1, std::vector<double>{1.5, 4.0}));
  const auto floors = floors_of(floor, {0, 1});
  EXPECT_FLOAT_EQ(floors[0], 1.5F);
  EXPECT_FLOAT_EQ(floors[1], 3.0F * SpeedFloor::kForgetting);
}

TEST(SpeedFloor, LeavesSlowerSamplesAlone) {
  SpeedFloor floor;
  floor.learn(observed(0, std::vector<double>{2.0}));
  Forecast forecast;
  forecast.resize(1, 1);
  forecast.times = {5.0F};
  floor.apply(first_workers(1), forecast);
  EXPECT_EQ(forecast.times[0], 5.0F);
}

TEST(SpeedFloor, AWorkerWithoutArrivalsGetsTheFastestOfAll) {
  SpeedFloor floor;
  // Worker 2 was censored at 1 s, which does not show how fast it can be.
  floor.learn({.step = 0,
               .seconds = {2.0, 3.0, 1.0, 0.5},
               .known = {Known::kArrived, Known::kArrived, Known::kLonger, Known::kNothing}});
  EXPECT_EQ(floors_of(floor, {1, 2, 3, 9}), (std::vector<float>{3.0F, 2.0F, 2.0F, 2.0F}));
}

TEST(SpeedFloor, WithoutAnyRunTimeThereIsNoFloor) {
  SpeedFloor floor;
  EXPECT_EQ(floors_of(floor, {0}), std::vector<float>{1e-6F});
  floor.learn(observed(0, std::vector<double>{std::nan("")}));
  EXPECT_EQ(floors_of(floor, {0}), std::vector<float>{1e-6F});
}

TEST(SpeedFloor, TheFloorFollowsASlowerWorker) {
  SpeedFloor floor;
  floor.learn(observed(0, std::vector<double>{1.0}));
  for (Step step = 1; step < 1000; ++step) floor.learn(observed(step, std::vector<double>{4.0}));
  EXPECT_FLOAT_EQ(floors_of(floor, {0})[0], 4.0F);
}

}  // namespace
}  // namespace drover

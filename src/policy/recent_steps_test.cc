#include "policy/recent_steps.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

StepTimes step_of(Step step) {
  return {step,
          {3.0, 1.0, 4.0, 0.0, 4.0, 2.0},
          {Known::kArrived, Known::kArrived, Known::kLonger, Known::kNothing, Known::kLonger,
           Known::kArrived},
          4.0,
          3};
}

TEST(RecentSteps, KeepsTheNewestSteps) {
  RecentSteps recent(2);
  for (const Step step : {5u, 6u, 7u}) recent.learn(step_of(step));
  ASSERT_EQ(recent.steps().size(), 2u);
  EXPECT_EQ(recent.steps().front().step, 6u);
  EXPECT_EQ(recent.steps().back().step, 7u);
  EXPECT_EQ(recent.steps().back().seconds, step_of(7).seconds);
}

TEST(RecentSteps, ABoundBecomesARunTime) {
  RecentSteps recent(2);
  recent.learn(step_of(5));
  recent.learn(step_of(6));
  EXPECT_EQ(recent.learn_late(6, 2, 6.0), 1u);
  EXPECT_FALSE(recent.learn_late(6, 0, 9.0)) << "not censored";
  EXPECT_FALSE(recent.learn_late(6, 99, 6.0)) << "unknown worker";
  EXPECT_FALSE(recent.learn_late(4, 4, 6.0)) << "too old";
  const StepTimes& times = recent.steps().back();
  EXPECT_EQ(times.known[2], Known::kArrived);
  EXPECT_EQ(times.seconds[2], 6.0);
  EXPECT_EQ(times.seconds[0], 3.0);
  EXPECT_EQ(times.known[4], Known::kLonger);
}

TEST(FirstArrivals, AreSortedAndEndAtTheSmallestBound) {
  std::vector<double> arrived;
  StepTimes times = step_of(0);
  first_arrivals(times, arrived);
  EXPECT_EQ(arrived, (std::vector{1.0, 2.0, 3.0}));
  times.known[2] = Known::kArrived;
  times.seconds[2] = 6.0;
  first_arrivals(times, arrived);
  EXPECT_EQ(arrived, (std::vector{1.0, 2.0, 3.0})) << "worker 4 may have arrived before worker 2";
  times.known[4] = Known::kArrived;
  times.seconds[4] = 5.0;
  first_arrivals(times, arrived);
  EXPECT_EQ(arrived, (std::vector{1.0, 2.0, 3.0, 5.0, 6.0}));
}

TEST(Participants, AreWorkersWithARunTimeOrABound) { EXPECT_EQ(participants(step_of(0)), 5u); }

}  // namespace
}  // namespace drover

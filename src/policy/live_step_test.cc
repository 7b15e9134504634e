// A step is reviewed often enough, keeps a plan that is still the best, and never closes without
// gradients.
#include "policy/live_step.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace drover {
namespace {

constexpr double kNot = std::numeric_limits<double>::infinity();

Forecast forecast_of(const std::vector<std::vector<float>>& rows, bool sorted = false) {
  Forecast forecast;
  forecast.resize(static_cast<uint32_t>(rows.size()), static_cast<uint32_t>(rows.front().size()));
  for (uint32_t k = 0; k < forecast.samples; ++k)
    std::copy(rows[k].begin(), rows[k].end(), forecast.row(k).begin());
  forecast.sorted = sorted;
  return forecast;
}

// Eight workers that take 1 s to 8 s, in a run that reaches `lambda` gradients per second.
LiveStep eight_workers(double lambda, const WaitPlan& plan, uint32_t at_least = 1) {
  LiveStep step(1);
  step.begin(forecast_of({{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 8.0F}}), {},
             {.lambda = lambda});
  step.plan(plan, at_least, 4.0);
  return step;
}

TEST(LiveStep, FirstReviewIsAtHalfTheCutoffOrTheExpectedTime) {
  LiveStep step(1);
  step.begin(forecast_of({{1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F}}), {}, {});
  const Review review = step.plan({.arrivals = 5, .until = kNoTimeLimit}, 1, 1.25);
  EXPECT_EQ(review.arrivals, 2u);
  EXPECT_EQ(review.at, 1.25);
  EXPECT_EQ(step.plan({.arrivals = 1, .until = kNoTimeLimit}, 1, 1.0).arrivals, 1u);
}

TEST(LiveStep, NextReviewIsAfterAnEighthOfTheMissingOrATenthOfTheTime) {
  LiveStep step = eight_workers(0.01, {.arrivals = 8, .until = kNoTimeLimit});
  const auto revision =
      step.review({.step = 1,
                   .now = 2.0,
                   .arrived = std::vector{1.0, 2.0, kNot, kNot, kNot, kNot, kNot, kNot}});
  ASSERT_TRUE(revision);
  EXPECT_EQ(revision->arrived, 2u);
  EXPECT_EQ(revision->next.arrivals, 3u) << "6 / 8 of a worker, but at least one";
  EXPECT_DOUBLE_EQ(revision->next.at, 2.2);
}

TEST(LiveStep, WaitsForAllIfTimeIsCheap) {
  LiveStep step = eight_workers(0.01, {.arrivals = 8, .until = kNoTimeLimit}, 3);
  const auto revision =
      step.review({.step = 1,
                   .now = 1.0,
                   .arrived = std::vector{1.0, kNot, kNot, kNot, kNot, kNot, kNot, kNot}});
  ASSERT_TRUE(revision);
  EXPECT_FALSE(revision->closes);
  EXPECT_FALSE(revision->changed);
  EXPECT_EQ(revision->plan.arrivals, 8u);
  EXPECT_EQ(revision->at_least, 3u);
}

TEST(LiveStep, ClosesIfTimeIsExpensive) {
  LiveStep step = eight_workers(10.0, {.arrivals = 8, .until = kNoTimeLimit});
  const auto revision =
      step.review({.step = 1,
                   .now = 1.0,
                   .arrived = std::vector{1.0, kNot, kNot, kNot, kNot, kNot, kNot, kNot}});
  ASSERT_TRUE(revision);
  EXPECT_TRUE(revision->closes);
}

TEST(LiveStep, NeverClosesWithoutGradients) {
  LiveStep step = eight_workers(10.0, {.arrivals = 8, .until = kNoTimeLimit});
  const auto revision =
      step.review({.step = 1, .now = 0.5, .arrived = std::vector<double>(8, kNot)});
  ASSERT_TRUE(revision);
  EXPECT_FALSE(revision->closes);
}

TEST(LiveStep, HasNoReviewAfterThePlansLastArrival) {
  LiveStep step = eight_workers(0.01, {.arrivals = 2, .until = kNoTimeLimit});
  EXPECT_FALSE(step.review({.step = 1,
                            .now = 2.0,
                            .arrived = std::vector{1.0, 2.0, kNot, kNot, kNot, kNot, kNot, kNot}}));
}

TEST(LiveStep, WaitsOnlyForTheMinimumAfterTheTimeLimit) {
  LiveStep step = eight_workers(0.01, {.arrivals = 8, .until = 1.5}, 2);
  EXPECT_FALSE(step.review({.step = 1,
                            .now = 2.0,
                            .arrived = std::vector{1.0, 2.0, kNot, kNot, kNot, kNot, kNot, kNot}}))
      << "two have arrived";
  LiveStep other = eight_workers(0.01, {.arrivals = 8, .until = 1.5}, 2);
  const auto revision =
      other.review({.step = 1,
                    .now = 1.5,
                    .arrived = std::vector{1.0, kNot, kNot, kNot, kNot, kNot, kNot, kNot}});
  ASSERT_TRUE(revision);
  EXPECT_LE(revision->at_least, 2u);
}

}  // namespace
}  // namespace drover

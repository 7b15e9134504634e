#include "policy/mad.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/test_text.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

const std::vector<WorkerId> kAlive = {0, 1, 2, 3, 4};

StepTimes step_of(Step step, const std::vector<double>& seconds) {
  return {step, seconds, std::vector(seconds.size(), Known::kArrived), 0.0, 5};
}

TEST(Median, IsTheMiddleOfTheSorted) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::vector<double> values(1 + draw({seed}) % 12);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::floor(8.0 * unit_draw(seed, i));
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    EXPECT_EQ(median(values), (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0);
  }
}

TEST(Mad, LimitsTheTimeToMedianAndDeviations) {
  MadPolicy policy({.deviations = 2.0, .window = 2, .quorum = 0.5}, 1);
  policy.learn(step_of(0, {1.0, 2.0, 3.0, 4.0, 100.0}));
  // Median 3; deviations 2 1 0 1 97, their median 1.
  const Choice choice = policy.decide({1, kAlive});
  EXPECT_EQ(choice.cutoff, 5u);
  EXPECT_EQ(choice.time_limit, 5.0);
  EXPECT_EQ(choice.at_least, 3u) << "half of five, rounded up";
  EXPECT_THAT(choice.reason, mentions("mad", 5, 3, 2, 1));
}

TEST(Mad, PoolsTheWindowAndForgetsOlderSteps) {
  MadPolicy policy({.deviations = 3.0, .window = 2, .quorum = 0.5}, 1);
  policy.learn(step_of(0, {50.0, 50.0, 50.0, 50.0, 50.0}));
  policy.learn(step_of(1, {1.0, 1.0, 1.0, 1.0, 1.0}));
  policy.learn(step_of(2, {3.0, 3.0, 3.0, 3.0, 3.0}));
  EXPECT_EQ(policy.decide({3, kAlive}).time_limit, 2.0 + 3.0 * 1.0);
}

TEST(Mad, CensoredRunTimesCountAsBoundsUntilKnown) {
  MadPolicy policy({.deviations = 1.0, .window = 5, .quorum = 0.5}, 1);
  StepTimes times = step_of(0, {1.0, 2.0, 4.0, 4.0, 4.0});
  times.known = {Known::kArrived, Known::kArrived, Known::kLonger, Known::kLonger, Known::kLonger};
  policy.learn(times);
  EXPECT_EQ(policy.decide({1, kAlive}).time_limit, 4.0 + 0.0);
  policy.learn_late(0, 2, 6.0);
  policy.learn_late(0, 3, 7.0);
  policy.learn_late(0, 4, 8.0);
  EXPECT_EQ(policy.decide({1, kAlive}).time_limit, 6.0 + 2.0);
}

TEST(Mad, DoesNotShrinkByItsOwnCensoring) {
  const Trace trace = make_trace(Shape::kNormal, 3, 400, 40);
  const auto walked = walk("mad", trace);
  const Choice& last = walked.back().choice;
  // Normal with deviation 0.05: MAD is 0.0337, so the limit is about 1.10.
  EXPECT_NEAR(last.time_limit, 1.0 + 3.0 * 0.6745 * 0.05, 0.02) << last.reason;
}

}  // namespace
}  // namespace drover::testing_support

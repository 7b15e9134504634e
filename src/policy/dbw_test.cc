#include "policy/dbw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/test_text.h"
#include "policy/isotonic.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Not;

// The min-max formula: f_i = max over j <= i of min over k >= i of the mean of values j..k.
std::vector<double> ascending_by_formula(const std::vector<double>& values,
                                         const std::vector<double>& weights) {
  std::vector<double> fit(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    double highest = -1e300;
    for (size_t j = 0; j <= i; ++j) {
      double lowest = 1e300;
      for (size_t k = i; k < values.size(); ++k) {
        double sum = 0.0;
        double weight = 0.0;
        for (size_t m = j; m <= k; ++m) sum += values[m] * weights[m], weight += weights[m];
        lowest = std::min(lowest, sum / weight);
      }
      highest = std::max(highest, lowest);
    }
    fit[i] = highest;
  }
  return fit;
}

TEST(Isotonic, AgreesWithTheMinMaxFormula) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const size_t count = draw({seed}) % 12;
    std::vector<double> values(count);
    std::vector<double> weights(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = std::floor(10.0 * unit_draw(seed, i));
      weights[i] = 0.5 + unit_draw(seed, i, 1);
    }
    const std::vector<double> expected = ascending_by_formula(values, weights);
    make_ascending(values, weights);
    for (size_t i = 0; i < count; ++i) EXPECT_NEAR(values[i], expected[i], 1e-9);
  }
}

TEST(Isotonic, KeepsAscendingValues) {
  std::vector<double> values = {1.0, 2.0, 2.0, 7.0};
  make_ascending(values, std::vector(4, 1.0));
  EXPECT_EQ(values, (std::vector{1.0, 2.0, 2.0, 7.0}));
}

const std::vector<WorkerId> kAlive = {0, 1, 2, 3};

StepTimes step_of(Step step, const std::vector<double>& seconds, double elapsed) {
  StepTimes times{.step = step, .elapsed = elapsed};
  for (const double each : seconds) {
    const bool arrived = each <= elapsed;
    times.seconds.push_back(arrived ? each : elapsed);
    times.known.push_back(arrived ? Known::kArrived : Known::kLonger);
    times.contributors += arrived ? 1 : 0;
  }
  return times;
}

TEST(Dbw, WeighsGainAgainstTime) {
  DbwPolicy policy({.noise = 1.0, .window = 5}, 1);
  policy.learn(step_of(0, {1.0, 1.0, 1.0, 4.0}, 4.0));
  // gain / T: 0, 1/2, 2/3, 3/4 / 4.
  const Choice choice = policy.decide({1, kAlive});
  EXPECT_EQ(choice.cutoff, 3u);
  EXPECT_THAT(choice.reason, mentions("dbw", 3, 4, "66.7", 1));
  // With an overhead of 100, the time hardly matters.
  EXPECT_EQ(policy.decide({1, kAlive, 100.0}).cutoff, 4u);
}

TEST(Dbw, WaitsForOneWithoutNoiseAndForAllWithMuch) {
  DbwPolicy clean({.noise = 0.001, .window = 5}, 1);
  DbwPolicy noisy({.noise = 1000.0, .window = 5}, 1);
  for (DbwPolicy* policy : {&clean, &noisy}) policy->learn(step_of(0, {1.0, 2.0, 3.0, 4.0}, 4.0));
  EXPECT_EQ(clean.decide({1, kAlive}).cutoff, 1u);
  EXPECT_EQ(noisy.decide({1, kAlive}).cutoff, 4u);
}

TEST(Dbw, TheDefaultNoiseIsHalfOfTheWorkersAlive) {
  DbwPolicy policy({.noise = {}, .window = 5}, 1);
  policy.learn(step_of(0, {7.0, 7.0, 7.0, 7.0}, 7.0));
  EXPECT_THAT(policy.decide({1, kAlive}).reason, AllOf(mentions(7, 2), Not(mentions(1))));
  EXPECT_THAT(policy.decide({1, std::span(kAlive).first(2)}).reason, mentions(7, 1));
}

TEST(Dbw, UsesTheMeasuredNoiseUnlessItIsSet) {
  DbwPolicy policy({.noise = {}, .window = 5}, 1);
  DbwPolicy fixed({.noise = 0.25, .window = 5}, 1);
  for (DbwPolicy* each : {&policy, &fixed}) each->learn(step_of(0, {1.0, 1.0, 1.0, 1.0}, 1.0));
  EXPECT_THAT(policy.decide({1, kAlive, 0.0, 1.5}).reason, mentions("1.5"));
  EXPECT_THAT(fixed.decide({1, kAlive, 0.0, 1.5}).reason, mentions("0.25"));
}

TEST(Dbw, UsesTheNewestArrivalsAndBounds) {
  DbwPolicy policy({.noise = 1.5, .window = 1}, 1);
  policy.learn(step_of(0, {1.0, 1.0, 1.0, 1.1}, 1.1));
  EXPECT_EQ(policy.decide({1, kAlive}).cutoff, 4u);
  // All workers become ten times slower, and the step does not wait for the fourth. Its old
  // arrivals must not lower the estimate for the third.
  policy.learn(step_of(1, {10.0, 10.0, 10.0, 99.0}, 10.0));
  EXPECT_THAT(policy.decide({2, kAlive}).reason, mentions(10));
}

TEST(Dbw, RetriesArrivalsNotSeenForLong) {
  // Three workers are slow at first, then nearly as fast as the others.
  Trace trace(300, std::vector(12, 1.0));
  for (size_t step = 0; step < 300; ++step) {
    std::fill_n(trace[step].begin(), 3, step < 60 ? 3.0 : 1.01);
  }
  const auto walked = walk("dbw", trace);
  EXPECT_EQ(walked[50].choice.cutoff, 9u);
  EXPECT_EQ(walked.back().choice.cutoff, 12u);
}

TEST(Dbw, LearnsLateRunTimes) {
  DbwPolicy policy({.noise = 1.0, .window = 5}, 1);
  policy.learn(step_of(0, {1.0, 1.0, 1.0, 1.2}, 1.0));
  EXPECT_EQ(policy.decide({1, kAlive}).cutoff, 4u) << "the slow run-time is not known yet";
  policy.learn_late(0, 3, 9.0);
  EXPECT_EQ(policy.decide({1, kAlive}).cutoff, 3u);
}

}  // namespace
}  // namespace drover::testing_support

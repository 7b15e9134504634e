#include "sim/run_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace drover {
namespace {

constexpr uint64_t kSeed = 7;

Scenario with_law(const RunTimeLaw& law) {
  Scenario scenario;
  scenario.run_times.push_back({{}, law});
  return scenario;
}

struct Sample {
  double mean = 0.0;
  double deviation = 0.0;
  double least = std::numeric_limits<double>::infinity();
};

Sample measure(const Scenario& scenario, Step steps = 400, uint32_t workers = 100) {
  RunTimes times(scenario, workers, kSeed);
  double sum = 0.0;
  double squares = 0.0;
  Sample sample;
  for (Step step = 0; step < steps; ++step) {
    for (WorkerId worker = 0; worker < workers; ++worker) {
      const double time = times.seconds(step, worker);
      sum += time;
      squares += time * time;
      sample.least = std::min(sample.least, time);
    }
  }
  const double count = static_cast<double>(steps) * workers;
  sample.mean = sum / count;
  sample.deviation = std::sqrt(squares / count - sample.mean * sample.mean);
  return sample;
}

TEST(RunTimes, NormalAndLognormalHaveTheGivenMeanAndDeviation) {
  for (const RunTimeKind kind : {RunTimeKind::kNormal, RunTimeKind::kLognormal}) {
    const Sample found = measure(with_law({.kind = kind, .mean = 2.0, .deviation = 0.3}));
    EXPECT_NEAR(found.mean, 2.0, 0.01);
    EXPECT_NEAR(found.deviation, 0.3, 0.01);
    EXPECT_GT(found.least, 0.0);
  }
}

TEST(RunTimes, ANormalLawNeverGivesATimeBelowZero) {
  const Sample found =
      measure(with_law({.kind = RunTimeKind::kNormal, .mean = 1.0, .deviation = 5.0}));
  EXPECT_DOUBLE_EQ(found.least, 0.01);
}

TEST(RunTimes, AShiftedExponentialHasMeanShiftPlusMean) {
  const Sample found =
      measure(with_law({.kind = RunTimeKind::kShiftedExponential, .mean = 0.5, .shift = 1.0}));
  EXPECT_NEAR(found.mean, 1.5, 0.02);
  EXPECT_NEAR(found.deviation, 0.5, 0.02);
  EXPECT_GE(found.least, 1.0);
}

TEST(RunTimes, AParetoLawHasTheGivenTail) {
  const Scenario scenario = with_law({.kind = RunTimeKind::kPareto, .shift = 1.0, .shape = 2.0});
  RunTimes times(scenario, 100, kSeed);
  int beyond = 0;
  for (Step step = 0; step < 400; ++step) {
    for (WorkerId worker = 0; worker < 100; ++worker) beyond += times.seconds(step, worker) > 4.0;
  }
  EXPECT_NEAR(beyond / 40'000.0, 1.0 / 16.0, 0.005);  // (1/4)^2
}

TEST(RunTimes, ATraceIsRepeated) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  auto trace = std::make_shared<Trace>();
  trace->workers = {"w0", "w1"};
  trace->times = {1.0, 2.0, 3.0, unknown};
  const Scenario scenario = with_law({.kind = RunTimeKind::kTrace, .trace = trace});
  RunTimes times(scenario, 3, kSeed);
  EXPECT_EQ(times.seconds(0, 0), 1.0);
  EXPECT_EQ(times.seconds(1, 0), 3.0);
  EXPECT_EQ(times.seconds(2, 1), 2.0);
  EXPECT_EQ(times.seconds(0, 2), 1.0) << "the columns are repeated for further workers";
  EXPECT_EQ(times.seconds(1, 1), 2.0) << "a missing time is replaced by the median";
}

TEST(RunTimes, AWholeNodeIsSlowInTheGivenSteps) {
  Scenario scenario;
  scenario.nodes = {2, 3};
  scenario.slow.push_back({.selector = {.node = 1}, .steps = {5, 10}, .factor = 2.0});
  RunTimes times(scenario, 5, kSeed);
  EXPECT_EQ(times.seconds(5, 1), 1.0);
  EXPECT_EQ(times.seconds(5, 2), 2.0);
  EXPECT_EQ(times.seconds(9, 4), 2.0);
  EXPECT_EQ(times.seconds(10, 4), 1.0);
  EXPECT_EQ(times.seconds(4, 4), 1.0);
}

TEST(RunTimes, ARegimeHasTheProbabilitiesOfItsChain) {
  Scenario scenario;
  scenario.regimes.push_back({.enter = 0.1, .leave = 0.3, .factor = 3.0});
  RunTimes times(scenario, 50, kSeed);
  int ill = 0;
  int recoveries = 0;
  for (WorkerId worker = 0; worker < 50; ++worker) {
    for (Step step = 100; step < 1100; ++step) {
      const bool now = times.seconds(step, worker) == 3.0;
      ill += now;
      recoveries += !now && times.seconds(step - 1, worker) == 3.0;
    }
  }
  EXPECT_NEAR(ill / 50'000.0, 0.1 / (0.1 + 0.3), 0.01);
  EXPECT_NEAR(static_cast<double>(recoveries) / ill, 0.3, 0.01);
}

TEST(RunTimes, ANodesRegimeIsSharedByItsWorkers) {
  Scenario scenario;
  scenario.nodes = {2, 2};
  scenario.regimes.push_back({.by_node = true, .enter = 0.5, .leave = 0.5, .factor = 3.0});
  RunTimes times(scenario, 4, kSeed);
  bool nodes_differ = false;
  for (Step step = 0; step < 50; ++step) {
    EXPECT_EQ(times.seconds(step, 0), times.seconds(step, 1));
    EXPECT_EQ(times.seconds(step, 2), times.seconds(step, 3));
    nodes_differ = nodes_differ || times.seconds(step, 0) != times.seconds(step, 2);
  }
  EXPECT_TRUE(nodes_differ);
}

TEST(RunTimes, StragglersHaveTheGivenShare) {
  Scenario scenario;
  scenario.straggling.push_back({.share = 0.1, .delay_mean = 5.0, .delay_deviation = 0.5});
  RunTimes times(scenario, 100, kSeed);
  int late = 0;
  for (Step step = 0; step < 400; ++step) {
    for (WorkerId worker = 0; worker < 100; ++worker) late += times.seconds(step, worker) > 3.0;
  }
  EXPECT_NEAR(late / 40'000.0, 0.1, 0.005);
}

TEST(RunTimes, DriftGrowsWithEveryStep) {
  Scenario scenario;
  scenario.drifts.push_back({.selector = {.workers = {{0, 0}}}, .per_step = 0.01});
  RunTimes times(scenario, 2, kSeed);
  EXPECT_NEAR(times.seconds(100, 0), std::pow(1.01, 100), 1e-9);
  EXPECT_EQ(times.seconds(100, 1), 1.0);
}

TEST(RunTimes, TheLastMatchingRuleApplies) {
  Scenario scenario = with_law({.mean = 1.0});
  scenario.run_times.push_back({{.workers = {{1, 2}}}, {.mean = 4.0}});
  RunTimes times(scenario, 3, kSeed);
  EXPECT_EQ(times.seconds(0, 0), 1.0);
  EXPECT_EQ(times.seconds(0, 2), 4.0);
}

TEST(RunTimes, DoNotDependOnTheOrderOfCalls) {
  Scenario scenario = with_law({.kind = RunTimeKind::kLognormal, .mean = 1.0, .deviation = 0.5});
  scenario.regimes.push_back({.enter = 0.2, .leave = 0.2, .factor = 2.0});
  RunTimes forwards(scenario, 4, kSeed);
  RunTimes backwards(scenario, 4, kSeed);
  std::vector<double> seen;
  for (Step step = 0; step < 20; ++step) seen.push_back(forwards.seconds(step, 3));
  for (Step step = 20; step-- > 0;) EXPECT_EQ(backwards.seconds(step, 3), seen[step]);
  RunTimes other(scenario, 4, kSeed + 1);
  EXPECT_NE(other.seconds(0, 3), seen[0]);
}

}  // namespace
}  // namespace drover

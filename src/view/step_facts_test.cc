// The quantities of a step: the oracle's cutoff, the parts of its time, and the time saved.
#include "view/step_facts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random_draw.h"

namespace drover {
namespace {

using std::chrono::milliseconds;

RecordedArrival arrival(WorkerId worker, int64_t ms, int64_t compute_ms = 0) {
  return {.arrival = {
              .worker = worker, .run_time = milliseconds(ms), .compute = milliseconds(compute_ms)}};
}

TEST(OracleCutoff, ExcludesStragglersThatReduceTheThroughput) {
  // 3 gradients in 12 ms are more per second than 4 in 100 ms.
  EXPECT_EQ(
      oracle_cutoff(std::vector{arrival(0, 12), arrival(1, 100), arrival(2, 10), arrival(3, 11)}),
      3.0);
  EXPECT_EQ(oracle_cutoff(std::vector{arrival(0, 10), arrival(1, 20)}), 2.0)
      << "the largest of equals";
  EXPECT_TRUE(std::isnan(oracle_cutoff({})));
}

TEST(OracleCutoff, IsUnknownIfATimeIsCensored) {
  std::vector arrivals{arrival(0, 10), arrival(1, 11)};
  arrivals[1].arrival.censored = true;
  EXPECT_TRUE(std::isnan(oracle_cutoff(arrivals)));
  arrivals[1].arrival.censored = false;
  arrivals[1].late = true;  // its run-time is known
  EXPECT_EQ(oracle_cutoff(arrivals), 2.0);
}

TEST(OracleCutoff, IsTheBestOfAllCutoffs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<RecordedArrival> arrivals;
    for (WorkerId worker = 0; worker < 1 + seed % 9; ++worker)
      arrivals.push_back(arrival(worker, 1 + static_cast<int64_t>(draw({seed, worker}) % 30)));
    // The time of a cutoff is the earliest time at which that many have arrived.
    double best_rate = 0.0;
    double best = 0.0;
    for (size_t cutoff = 1; cutoff <= arrivals.size(); ++cutoff) {
      int64_t ms = 0;
      const auto arrived = [&] {
        size_t count = 0;
        for (const auto& each : arrivals) count += each.arrival.run_time <= milliseconds(ms);
        return count;
      };
      while (arrived() < cutoff) ++ms;
      const double rate = static_cast<double>(cutoff) / static_cast<double>(ms);
      if (rate > best_rate * (1.0 - 1e-12)) {
        best_rate = rate;
        best = static_cast<double>(cutoff);
      }
    }
    const double cutoff = oracle_cutoff(arrivals);
    std::vector<int64_t> sorted;
    for (const auto& each : arrivals) sorted.push_back(each.arrival.run_time.count());
    std::sort(sorted.begin(), sorted.end());
    const double rate =
        cutoff / (static_cast<double>(sorted[static_cast<size_t>(cutoff) - 1]) / 1e6);
    EXPECT_NEAR(rate, best_rate, 1e-9) << cutoff << " vs. " << best;
  }
}

TEST(StepFacts, SplitTheTimeIntoParts) {
  const StepRecord record{
      .elapsed = milliseconds(100), .closing = milliseconds(30), .undecided = milliseconds(10)};
  const StepFacts facts =
      facts_of(record, std::vector{arrival(0, 60, 40), arrival(1, 70, 35)}, nullptr);
  EXPECT_DOUBLE_EQ(facts.split.deciding_s, 0.010);
  EXPECT_DOUBLE_EQ(facts.split.aggregating_s, 0.020);
  EXPECT_DOUBLE_EQ(facts.split.computing_s, 0.040) << "the slowest";
  EXPECT_DOUBLE_EQ(facts.split.moving_s, 0.030) << "clipped from 35 ms to the rest";
  EXPECT_DOUBLE_EQ(facts.split.waiting_s, 0.0);
}

TEST(StepFacts, PartsAddUpDespiteClockDifferences) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const auto time = [seed](uint64_t what, int64_t most) {
      return milliseconds(static_cast<int64_t>(draw({seed, what}) % static_cast<uint64_t>(most)));
    };
    const StepRecord record{
        .elapsed = time(1, 100), .closing = time(2, 60), .undecided = time(3, 60)};
    std::vector<RecordedArrival> arrivals;
    for (WorkerId worker = 0; worker < 3; ++worker)
      arrivals.push_back(
          arrival(worker, time(4 + worker, 90).count(), time(8 + worker, 90).count()));
    arrivals[2].arrival.censored = true;
    const StepSplit split = facts_of(record, arrivals, nullptr).split;
    double sum = split.aggregating_s + split.deciding_s;
    EXPECT_GE(split.aggregating_s, 0.0);
    EXPECT_GE(split.deciding_s, 0.0);
    if (std::isnan(split.computing_s)) {
      EXPECT_TRUE(std::isnan(split.moving_s) && std::isnan(split.waiting_s));
      continue;
    }
    for (const double part : {split.computing_s, split.moving_s, split.waiting_s}) {
      EXPECT_GE(part, 0.0);
      sum += part;
    }
    EXPECT_NEAR(sum, seconds(record.elapsed), 1e-12);
  }
}

TEST(StepFacts, ComputingIsUnknownIfNotReported) {
  const StepFacts facts =
      facts_of({.elapsed = milliseconds(10)}, std::vector{arrival(0, 5)}, nullptr);
  EXPECT_TRUE(std::isnan(facts.split.computing_s));
  EXPECT_DOUBLE_EQ(facts.split.aggregating_s, 0.0);
}

TEST(StepFacts, SavedTimeIsFromTheLastUsedToTheLastArrival) {
  std::vector arrivals{arrival(0, 10), arrival(1, 15), arrival(2, 90)};
  arrivals[2].late = true;
  EXPECT_DOUBLE_EQ(facts_of({}, arrivals, nullptr).saved.at_least_s, 0.075);
  EXPECT_EQ(facts_of({}, arrivals, nullptr).censored, 0u);
  arrivals[2] = arrival(2, 20);
  arrivals[2].arrival.censored = true;
  EXPECT_DOUBLE_EQ(facts_of({}, arrivals, nullptr).saved.at_least_s, 0.005);
  EXPECT_EQ(facts_of({}, arrivals, nullptr).censored, 1u);
}

TEST(StepFacts, AForecastEstimatesTheSavedTimeIfArrivalsAreCensored) {
  std::vector arrivals{arrival(0, 10), arrival(1, 15), arrival(2, 20)};
  arrivals[2].arrival.censored = true;
  // Predicted at 40 ms, the last arrival would be 25 ms after the last used one.
  StepFacts facts = facts_of({}, arrivals, nullptr, 0.040);
  EXPECT_TRUE(facts.saved.predicted);
  EXPECT_DOUBLE_EQ(facts.saved.at_least_s, 0.005);
  EXPECT_DOUBLE_EQ(facts.saved.about_s, 0.025);
  // A lower bound overrides a smaller forecast.
  facts = facts_of({}, arrivals, nullptr, 0.012);
  EXPECT_TRUE(facts.saved.predicted);
  EXPECT_DOUBLE_EQ(facts.saved.about_s, 0.005);
  facts = facts_of({}, arrivals, nullptr);
  EXPECT_FALSE(facts.saved.predicted);
  EXPECT_DOUBLE_EQ(facts.saved.about_s, 0.005);
  // Without censored arrivals the forecast is not used.
  arrivals[2].arrival.censored = false;
  arrivals[2].late = true;
  facts = facts_of({}, arrivals, nullptr, 0.040);
  EXPECT_FALSE(facts.saved.predicted);
  EXPECT_DOUBLE_EQ(facts.saved.about_s, 0.005);
}

TEST(StepFacts, TakeCutoffAndAliveFromTheDecision) {
  const DecisionRecord decision{.cutoff = 2, .alive = 5};
  const std::vector arrivals{arrival(0, 10), arrival(1, 15), arrival(2, 90)};
  EXPECT_EQ(facts_of({}, arrivals, &decision).cutoff, 2.0);
  EXPECT_EQ(facts_of({}, arrivals, &decision).alive, 5.0);
  EXPECT_TRUE(std::isnan(facts_of({}, arrivals, nullptr).cutoff));
  EXPECT_EQ(facts_of({}, arrivals, nullptr).alive, 3.0);
}

}  // namespace
}  // namespace drover

#include "policy/stop_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

// The remaining run-times after `here` arrivals, with these samples for the other workers, all
// later than now. All samples have the same weight, because none contradicts the arrivals.
Remaining remaining_of(const std::vector<std::vector<float>>& rows, double now, uint32_t here = 0) {
  Forecast forecast;
  const auto missing = static_cast<uint32_t>(rows.front().size());
  forecast.resize(static_cast<uint32_t>(rows.size()), here + missing);
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    std::fill_n(forecast.row(k).begin(), here, static_cast<float>(now / 2.0));
    std::copy(rows[k].begin(), rows[k].end(), forecast.row(k).begin() + here);
  }
  std::vector<bool> arrived(here + missing, false);
  std::fill_n(arrived.begin(), here, true);
  Remaining remaining;
  remaining.start(forecast);
  remaining.condition(arrived, now, DrawStream(1));
  return remaining;
}

StopDecision best_of(const Remaining& remaining, const Collected& collected,
                     const WaitPlan& planned, const Terms& terms,
                     std::span<const double> shares = {}) {
  StopSearch search;
  return search.best(remaining, shares, collected, planned, terms);
}

// --- The oracle: the value of a plan, computed sample by sample from the definition.

double value_in(std::span<const float> row, std::span<const double> shares,
                const Collected& collected, const WaitPlan& plan, const Terms& terms) {
  std::vector<std::pair<double, double>> next;
  for (size_t j = 0; j < row.size(); ++j) {
    next.emplace_back(static_cast<double>(row[j]), shares.empty() ? 1.0 : shares[j]);
  }
  std::sort(next.begin(), next.end());
  double gradients = collected.gradients;
  uint32_t arrivals = collected.arrivals;
  for (const auto& [time, share] : next) {
    if (time > plan.until) return terms.value_of(gradients, plan.until);
    gradients += share;
    if (++arrivals == plan.arrivals) return terms.value_of(gradients, time);
  }
  ADD_FAILURE() << "the plan waits for more workers than are missing";
  return 0.0;
}

double value_of(const Remaining& remaining, std::span<const double> shares,
                const Collected& collected, const WaitPlan& plan, const Terms& terms) {
  if (plan.arrivals == collected.arrivals)
    return terms.value_of(collected.gradients, collected.now);
  double value = 0.0;
  for (uint32_t k = 0; k < remaining.samples(); ++k) {
    value += remaining.weights()[k] * value_in(remaining.row(k), shares, collected, plan, terms);
  }
  return value;
}

// The times of all sampled arrivals, and the end of the plan.
std::vector<double> event_times(const Remaining& remaining, const WaitPlan& planned) {
  std::vector<double> all;
  for (uint32_t k = 0; k < remaining.samples(); ++k) {
    for (const float time : remaining.row(k)) {
      if (time < kNever) all.push_back(static_cast<double>(time));
    }
  }
  if (planned.until < kNoTimeLimit) all.push_back(planned.until);
  std::sort(all.begin(), all.end());
  return all;
}

struct Case {
  Remaining remaining;
  std::vector<double> shares;
  Collected collected;
  WaitPlan planned;
};

// Small enough that StopSearch considers every sample. One in five has a worker that never arrives.
Case random_case(uint64_t seed) {
  const double now = 0.5 + unit_draw(seed, 1);
  const size_t missing = 1 + draw({seed, 2}) % 3;
  const size_t samples = 1 + draw({seed, 3}) % 2;
  const auto here = static_cast<uint32_t>(draw({seed, 4}) % 6);
  std::vector<std::vector<float>> rows(samples, std::vector<float>(missing));
  for (size_t k = 0; k < samples; ++k) {
    for (size_t j = 0; j < missing; ++j) {
      rows[k][j] = static_cast<float>(now + 0.01 + 2.0 * unit_draw(seed, 5, k, j));
    }
    if (seed % 5 == 0) rows[k][0] = static_cast<float>(now * 1e-3);
  }
  Case made{.remaining = remaining_of(rows, now, here),
            .shares = {},
            .collected = {.arrivals = here, .gradients = static_cast<double>(here), .now = now},
            .planned = {}};
  made.planned.arrivals = here + 1 + static_cast<uint32_t>(draw({seed, 6}) % missing);
  made.planned.until =
      seed % 2 == 0 ? kNoTimeLimit
                    : static_cast<double>(static_cast<float>(now + 2.0 * unit_draw(seed, 7)));
  if (made.planned.until <= now) made.planned.until = kNoTimeLimit;
  if (seed % 3 == 0) {
    for (size_t j = 0; j < missing; ++j) made.shares.push_back(0.2 + 2.0 * unit_draw(seed, 8, j));
  }
  return made;
}

std::vector<Terms> all_terms() {
  return {Terms{.overhead = 0.2}, Terms{.overhead = 0.1, .lambda = 1.5},
          Terms{.overhead = 0.1, .lambda = 4.0}, Terms{.overhead = 0.3, .noise = 2.0},
          Terms{.overhead = 0.1, .lambda = 1.0, .noise = 5.0}};
}

TEST(StopSearch, MatchesExhaustiveSearch) {
  size_t closed = 0;
  size_t changed = 0;
  size_t kept = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    for (const Terms& terms : all_terms()) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", lambda " +
                   std::to_string(terms.lambda.value_or(0.0)));
      const Case each = random_case(seed);
      const StopDecision found =
          best_of(each.remaining, each.collected, each.planned, terms, each.shares);
      const auto value = [&](const WaitPlan& plan) {
        return value_of(each.remaining, each.shares, each.collected, plan, terms);
      };
      EXPECT_NEAR(found.closing, terms.value_of(each.collected.gradients, each.collected.now),
                  1e-9);
      const std::vector<double> until = event_times(each.remaining, each.planned);
      if (until.empty()) {
        EXPECT_TRUE(found.closes);
        continue;
      }
      // A plan without a limit ends when no more arrivals are expected.
      WaitPlan planned = each.planned;
      planned.until = std::min(planned.until, until.back());
      const double as_planned = value(planned);
      const auto all =
          each.collected.arrivals + static_cast<uint32_t>(each.remaining.missing().size());
      double most = found.closing;
      for (uint32_t count = each.collected.arrivals + 1; count <= all; ++count) {
        most = std::max(most, value({count, until.back()}));
      }
      for (const double limit : until) most = std::max(most, value({all, limit}));
      if (found.changed) {
        EXPECT_NEAR(found.value, most, 1e-5);
        EXPECT_GT(found.value, as_planned);
        EXPECT_NEAR(found.value, value(found.plan), 1e-5) << "the reported value is correct";
        EXPECT_EQ(found.closes, found.plan.arrivals == each.collected.arrivals);
        EXPECT_EQ(found.closes, found.plan.until == each.collected.now);
        ++(found.closes ? closed : changed);
      } else {
        EXPECT_FALSE(found.closes);
        EXPECT_NEAR(found.value, as_planned, 1e-5);
        EXPECT_EQ(found.plan.arrivals, each.planned.arrivals);
        EXPECT_EQ(found.plan.until, each.planned.until);
        const double worth =
            terms.worth_of(std::max(1.0, each.collected.gradients), each.collected.now);
        EXPECT_LE(most, as_planned + 0.2 * worth + 1e-5) << "no plan is better by the margin";
        ++kept;
      }
    }
  }
  EXPECT_GT(closed, 50u);
  EXPECT_GT(changed, 50u);
  EXPECT_GT(kept, 50u);
}

TEST(StopSearch, ReportsTheCorrectValueForManyWorkers) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::vector<float>> rows(60, std::vector<float>(100));
    for (size_t k = 0; k < rows.size(); ++k) {
      for (size_t j = 0; j < rows[k].size(); ++j) {
        rows[k][j] = static_cast<float>(1.01 - std::log(1.0 - unit_draw(seed, k, j)));
      }
    }
    const Remaining remaining = remaining_of(rows, 1.0, 20);
    const Collected collected{.arrivals = 20, .gradients = 20.0, .now = 1.0};
    for (const Terms& terms : {Terms{}, Terms{.lambda = 30.0}, Terms{.lambda = 60.0}}) {
      const WaitPlan planned{.arrivals = 21, .until = 5.0};
      const StopDecision found = best_of(remaining, collected, planned, terms);
      EXPECT_NEAR(found.value, value_of(remaining, {}, collected, found.plan, terms), 1e-3);
      // As good as the best time limit, up to the spacing of the candidates.
      double most = found.closing;
      for (double limit = 1.05; limit < 6.0; limit += 0.05) {
        most = std::max(most, value_of(remaining, {}, collected, {120, limit}, terms));
      }
      EXPECT_GT(found.value, most - 0.05 * std::abs(most)) << terms.lambda.value_or(0.0);
    }
  }
}

// --- Scenarios.

TEST(StopSearch, ClosesWhenNoMoreArrivalsAreExpected) {
  // Both workers are later than all their samples, so the forecast says nothing about them.
  const Remaining remaining = remaining_of({{0.1F, 0.1F}, {0.1F, 0.1F}}, 1.0, 3);
  ASSERT_EQ(remaining.row(0)[0], kNever);
  const Collected collected{.arrivals = 3, .gradients = 3.0, .now = 1.0};
  for (const Terms& terms : {Terms{}, Terms{.lambda = 2.0}}) {
    for (const double until : {kNoTimeLimit, 5.0}) {
      const StopDecision found = best_of(remaining, collected, {5, until}, terms);
      EXPECT_TRUE(found.closes);
      EXPECT_TRUE(found.changed);
      EXPECT_EQ(found.plan.arrivals, 3u);
      EXPECT_EQ(found.plan.until, 1.0);
      EXPECT_EQ(found.value, found.closing);
    }
  }
}

TEST(StopSearch, ClosesWhenTheOthersAreProbablyLate) {
  const Remaining remaining = remaining_of({{9.0F}, {10.0F}, {11.0F}}, 1.0, 10);
  const Collected collected{.arrivals = 10, .gradients = 10.0, .now = 1.0};
  EXPECT_TRUE(best_of(remaining, collected, {11, kNoTimeLimit}, {}).closes);
  EXPECT_TRUE(best_of(remaining, collected, {11, kNoTimeLimit}, {.lambda = 8.0}).closes);
  // With a low long-run throughput, waiting costs little.
  EXPECT_FALSE(best_of(remaining, collected, {11, kNoTimeLimit}, {.lambda = 0.05}).closes);
}

TEST(StopSearch, KeepsThePlanIfNoneIsBetterByTheMargin) {
  // Closing now has the value 10 / 1, the plan about 12 / 1.1.
  const Remaining same = remaining_of({{1.1F, 1.1001F}}, 1.0, 10);
  const Collected collected{.arrivals = 10, .gradients = 10.0, .now = 1.0};
  const WaitPlan planned{.arrivals = 12, .until = 1.1001F};
  for (const Terms& terms : {Terms{}, Terms{.lambda = 10.0}}) {
    const StopDecision found = best_of(same, collected, planned, terms);
    EXPECT_FALSE(found.changed);
    EXPECT_FALSE(found.closes);
    EXPECT_EQ(found.plan.arrivals, planned.arrivals);
    EXPECT_EQ(found.plan.until, planned.until);
    EXPECT_NEAR(found.value, terms.value_of(12.0, 1.1001), 1e-5);
    EXPECT_DOUBLE_EQ(found.closing, terms.value_of(10.0, 1.0));
  }
}

TEST(StopSearch, WaitsForALargeGroupThatArrivesSoon) {
  // The plan is to close at the next arrival, or just before ten workers arrive together.
  std::vector<float> row(11, 1.3F);
  row[0] = 1.1F;
  const Remaining remaining = remaining_of({row, row}, 1.0, 5);
  const Collected collected{.arrivals = 5, .gradients = 5.0, .now = 1.0};
  for (const Terms& terms : {Terms{}, Terms{.lambda = 5.0}}) {
    for (const WaitPlan& planned : {WaitPlan{6, kNoTimeLimit}, WaitPlan{16, 1.25}}) {
      const StopDecision found = best_of(remaining, collected, planned, terms);
      EXPECT_TRUE(found.changed);
      EXPECT_FALSE(found.closes);
      EXPECT_GE(found.plan.until, static_cast<double>(1.3F));
      EXPECT_EQ(found.plan.arrivals, 16u);
      EXPECT_NEAR(found.value, terms.value_of(16.0, 1.3), 1e-4);
    }
  }
}

TEST(StopSearch, StopsWaitingForALateGroup) {
  const Remaining remaining = remaining_of({std::vector<float>(5, 8.0F)}, 1.0, 15);
  const Collected collected{.arrivals = 15, .gradients = 15.0, .now = 1.0};
  EXPECT_TRUE(best_of(remaining, collected, {20, kNoTimeLimit}, {}).closes);
  EXPECT_TRUE(best_of(remaining, collected, {20, 9.0}, {.lambda = 10.0}).closes);
}

TEST(StopSearch, ClosesBetweenTwoGroups) {
  // Three workers arrive soon, the fourth only in one of ten samples: do not wait for the fourth.
  std::vector<std::vector<float>> rows(9, {1.1F, 1.11F, 1.12F, 6.0F});
  rows.push_back({1.1F, 1.11F, 1.12F, 1.13F});
  const Remaining remaining = remaining_of(rows, 1.0, 6);
  const Collected collected{.arrivals = 6, .gradients = 6.0, .now = 1.0};
  const StopDecision found = best_of(remaining, collected, {10, kNoTimeLimit}, {});
  EXPECT_FALSE(found.closes);
  EXPECT_TRUE(found.changed);
  EXPECT_TRUE(found.plan.arrivals == 9 || found.plan.until < 1.2);
}

TEST(StopSearch, WaitsLongerForALargeShare) {
  // The longest wait for one worker with this share.
  const auto longest = [](double share, const Terms& terms) {
    double last = 1.0;
    for (double time = 1.02; time < 20.0; time += 0.02) {
      const Remaining remaining = remaining_of({{static_cast<float>(time)}}, 1.0, 9);
      const std::vector<double> shares = {share};
      const StopDecision found =
          best_of(remaining, {.arrivals = 9, .gradients = 10.0 - share, .now = 1.0},
                  {.arrivals = 10, .until = kNoTimeLimit}, terms, shares);
      if (!found.closes) last = time;
    }
    return last;
  };
  for (const Terms& terms : {Terms{.overhead = 0.1}, Terms{.overhead = 0.1, .lambda = 2.0}}) {
    double before = 1.0;
    for (const double share : {0.3, 1.0, 2.0, 3.0}) {
      const double wait = longest(share, terms);
      EXPECT_GT(wait, before) << share;
      before = wait;
    }
  }
  // A gradient of share s is worth a wait of s / lambda, up to the margin.
  EXPECT_NEAR(longest(3.0, {.lambda = 2.0}) - 1.0, 1.5, 0.25);
}

TEST(StopSearch, AssignsSharesToTheRightWorkers) {
  // One worker arrives soon, one late; the plan is to wait for both. Nearly all of the remaining
  // work is first the early worker's, then the late worker's.
  const Remaining remaining = remaining_of({{4.0F, 1.1F}}, 1.0, 4);
  const Collected collected{.arrivals = 4, .gradients = 4.0, .now = 1.0};
  const StopDecision soon = best_of(remaining, collected, {6, kNoTimeLimit}, {.lambda = 1.0},
                                    std::vector<double>{0.1, 1.9});
  EXPECT_FALSE(soon.closes);
  EXPECT_NEAR(soon.value, 5.9 - 1.1, 1e-5);
  const StopDecision late = best_of(remaining, collected, {6, kNoTimeLimit}, {.lambda = 0.5},
                                    std::vector<double>{1.9, 0.1});
  EXPECT_NEAR(late.value, 6.0 - 0.5 * 4.0, 1e-5);
}

TEST(StopSearch, SharesOfOneEqualNoShares) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Case each = random_case(seed);
    const std::vector<double> whole(each.remaining.missing().size(), 1.0);
    for (const Terms& terms : all_terms()) {
      const StopDecision with = best_of(each.remaining, each.collected, each.planned, terms, whole);
      const StopDecision without = best_of(each.remaining, each.collected, each.planned, terms);
      EXPECT_EQ(with.value, without.value);
      EXPECT_EQ(with.plan.arrivals, without.plan.arrivals);
      EXPECT_EQ(with.plan.until, without.plan.until);
      EXPECT_EQ(with.closes, without.closes);
    }
  }
}

TEST(StopSearch, HasNoStateBetweenCalls) {
  StopSearch used;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Case each = random_case(seed);
    for (const Terms& terms : all_terms()) {
      const StopDecision found =
          used.best(each.remaining, each.shares, each.collected, each.planned, terms);
      const StopDecision fresh =
          best_of(each.remaining, each.collected, each.planned, terms, each.shares);
      EXPECT_EQ(found.value, fresh.value);
      EXPECT_EQ(found.plan.arrivals, fresh.plan.arrivals);
      EXPECT_EQ(found.plan.until, fresh.plan.until);
    }
  }
}

}  // namespace
}  // namespace drover::testing_support

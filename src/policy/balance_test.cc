#include "policy/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "policy/walk.h"

namespace drover::testing_support {
namespace {

std::vector<WorkerId> first(size_t count) {
  std::vector<WorkerId> workers(count);
  std::iota(workers.begin(), workers.end(), 0u);
  return workers;
}

double sum_of(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

// --- balanced_shares

// Tries all sets of workers at a bound: some of the cheapest at the maximum, some of the most
// expensive at the minimum, and the others in proportion.
std::vector<double> slow_shares(const std::vector<double>& costs, double least, double most,
                                double sum) {
  std::vector<double> shares(costs.size(), 0.0);
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a] < costs[b]; });
  const size_t n = costs.size();
  for (size_t high = 0; high <= n; ++high) {
    for (size_t low = 0; high + low <= n; ++low) {
      const double rest = sum - most * static_cast<double>(high) - least * static_cast<double>(low);
      double inverse = 0.0;
      for (size_t i = high; i < n - low; ++i) inverse += 1.0 / costs[order[i]];
      if (high + low == n && std::abs(rest) > 1e-9) continue;
      const double c = inverse > 0.0 ? rest / inverse : 0.0;
      bool right = true;
      for (size_t i = 0; i < n; ++i) {
        const double cost = costs[order[i]];
        shares[order[i]] = i < high ? most : i < n - low ? c / cost : least;
        right = right && shares[order[i]] >= least - 1e-9 && shares[order[i]] <= most + 1e-9;
        if (inverse <= 0.0) continue;
        if (i < high) right = right && c / cost >= most - 1e-9;
        if (i >= n - low) right = right && c / cost <= least + 1e-9;
      }
      if (right) return shares;
    }
  }
  ADD_FAILURE() << "no valid shares";
  return shares;
}

TEST(BalancedShares, AreInProportionToSpeed) {
  std::vector<double> shares;
  balanced_shares(std::vector{1.0, 2.0, 4.0}, 0.1, 10.0, 3.0, shares);
  EXPECT_NEAR(shares[0], 12.0 / 7.0, 1e-9);
  EXPECT_NEAR(shares[1], 6.0 / 7.0, 1e-9);
  EXPECT_NEAR(shares[2], 3.0 / 7.0, 1e-9);
}

TEST(BalancedShares, OthersGetTheRestOfABoundedShare) {
  std::vector<double> shares;
  balanced_shares(std::vector{1.0, 1.0, 100.0}, 0.4, 3.0, 3.0, shares);
  EXPECT_NEAR(shares[2], 0.4, 1e-9);
  EXPECT_NEAR(shares[0], 1.3, 1e-9);
  EXPECT_NEAR(shares[1], 1.3, 1e-9);
  balanced_shares(std::vector{0.01, 1.0, 1.0}, 0.1, 1.5, 3.0, shares);
  EXPECT_NEAR(shares[0], 1.5, 1e-9);
  EXPECT_NEAR(shares[1], 0.75, 1e-9);
}

TEST(BalancedShares, MatchExhaustiveSearch) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const size_t workers = 1 + draw({seed, 1}) % 12;
    const double spread = seed % 3 == 0 ? 5.0 : 1.0;
    std::vector<double> costs;
    for (size_t i = 0; i < workers; ++i)
      costs.push_back(std::exp(spread * (2.0 * unit_draw(seed, i, 2) - 1.0)));
    if (seed % 4 == 0) costs.back() = costs.front();
    const double least = 0.05 + 0.9 * unit_draw(seed, 3);
    const double most = 1.0 + 3.0 * unit_draw(seed, 4);
    const auto sum = static_cast<double>(workers);
    std::vector<double> shares;
    balanced_shares(costs, least, most, sum, shares);
    const std::vector<double> slow = slow_shares(costs, least, most, sum);
    ASSERT_EQ(shares.size(), workers);
    EXPECT_NEAR(sum_of(shares), sum, 1e-6);
    for (size_t i = 0; i < workers; ++i) {
      EXPECT_NEAR(shares[i], slow[i], 1e-6);
      EXPECT_GE(shares[i], least - 1e-12);
      EXPECT_LE(shares[i], most + 1e-12);
      for (size_t j = 0; j < workers; ++j) {
        const auto inside = [&](double share) { return share > least && share < most; };
        if (inside(shares[i]) && inside(shares[j])) {
          EXPECT_NEAR(shares[i] * costs[i] / (shares[j] * costs[j]), 1.0, 1e-6);
        }
      }
    }
  }
}

TEST(BalancedShares, AreOneIfTheBoundsAllowNothingElse) {
  std::vector<double> shares;
  balanced_shares(std::vector{1.0, 5.0, 9.0}, 1.0, 1.0, 3.0, shares);
  for (const double share : shares) EXPECT_NEAR(share, 1.0, 1e-12);
}

// --- whole_samples

TEST(WholeSamples, AreTheSharesRoundedToTheTotal) {
  EXPECT_EQ(whole_samples(std::vector{1.0, 1.0, 1.0}, 32, 96), (std::vector<uint32_t>{32, 32, 32}));
  EXPECT_EQ(whole_samples(std::vector{0.5, 1.5}, 3, 6), (std::vector<uint32_t>{2, 4}))
      << "1.5 and 4.5: of equal remainders, the first is rounded up";
  EXPECT_EQ(whole_samples(std::vector{0.01, 1.99}, 10, 20), (std::vector<uint32_t>{1, 19}));
}

TEST(WholeSamples, SumToTheTotalWithAtLeastOneEach) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const size_t workers = 1 + draw({seed, 1}) % 40;
    const auto batch = static_cast<uint32_t>(1 + draw({seed, 2}) % (seed % 2 == 0 ? 4 : 200));
    std::vector<double> shares;
    for (size_t i = 0; i < workers; ++i) shares.push_back(0.05 + 2.0 * unit_draw(seed, i, 3));
    const double scale = static_cast<double>(workers) / sum_of(shares);
    for (double& share : shares) share *= scale;
    const uint64_t total = uint64_t{batch} * workers;
    const std::vector<uint32_t> samples = whole_samples(shares, batch, total);
    ASSERT_EQ(samples.size(), workers);
    EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), uint64_t{0}), total);
    bool floored = false;
    for (const double share : shares) floored = floored || share * batch < 1.0;
    for (size_t i = 0; i < workers; ++i) {
      EXPECT_GE(samples[i], 1u);
      if (!floored) {
        EXPECT_LT(std::abs(samples[i] - shares[i] * batch), 1.0 + 1e-6);
      }
    }
    EXPECT_EQ(samples, whole_samples(shares, batch, total));
  }
}

TEST(WholeSamples, TheLargestShareCoversTheMinimum) {
  // 0.1, 0.1 and 5.8 of 6: the first two get 1 each.
  EXPECT_EQ(whole_samples(std::vector{0.05, 0.05, 2.9}, 2, 6), (std::vector<uint32_t>{1, 1, 4}));
  EXPECT_EQ(whole_samples(std::vector{0.2, 0.2, 2.6}, 1, 3), (std::vector<uint32_t>{1, 1, 1}));
}

// --- Balancer

// A run in which worker i takes a + b_i s for a share s, and is censored at `limit`.
class Cluster {
 public:
  explicit Cluster(const BalanceSettings& settings, double limit = 1e300)
      : balancer(settings), limit_(limit) {}

  // `costs` are the b of the workers in `alive`, which may be all.
  void step(const std::vector<double>& costs, double a = 0.0, std::vector<WorkerId> alive = {}) {
    if (alive.empty()) alive = first(costs.size());
    balancer.plan(next_, alive);
    StepTimes observed{.step = next_};
    observed.seconds.resize(costs.size(), 0.0);
    observed.known.resize(costs.size(), Known::kNothing);
    times.assign(costs.size(), 0.0);
    for (const WorkerId worker : alive) {
      times[worker] = a + costs[worker] * balancer.share(next_, worker);
      observed.known[worker] = times[worker] <= limit_ ? Known::kArrived : Known::kLonger;
      observed.seconds[worker] = std::min(times[worker], limit_);
    }
    balancer.learn(observed);
    ++next_;
  }
  double share(WorkerId worker) const { return balancer.share(next_ - 1, worker); }
  double imbalance() const {
    return *std::max_element(times.begin(), times.end()) /
           *std::min_element(times.begin(), times.end());
  }

  Balancer balancer;
  std::vector<double> times;  // of the last step

 private:
  const double limit_;
  Step next_ = 0;
};

std::vector<double> random_costs(uint64_t seed, size_t workers) {
  std::vector<double> costs;
  for (size_t i = 0; i < workers; ++i) costs.push_back(0.5 + 1.5 * unit_draw(seed, i));
  return costs;
}

TEST(Balancer, UnequalWorkersFinishTogetherAfterTheWarmUp) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<double> costs = random_costs(seed, 4 + seed);
    Cluster run({.warmup = 10, .seed = seed});
    for (Step step = 0; step < 15; ++step) run.step(costs);
    for (Step step = 15; step < 100; ++step) {
      run.step(costs);
      // Moves up and down combine, and small changes are ignored.
      EXPECT_LT(run.imbalance(), 1.08) << step;
    }
  }
}

TEST(Balancer, InTheWarmUpSharesAreEqualExceptForMoves) {
  Cluster run({.warmup = 10});
  std::set<double> seen;
  for (Step step = 0; step < 10; ++step) {
    run.step({1.0, 9.0, 3.0, 0.1, 5.0});
    for (WorkerId worker = 0; worker < 4; ++worker) {
      EXPECT_NEAR(run.share(worker), 1.0, 0.25);
      seen.insert(run.share(worker));
    }
    EXPECT_NEAR(run.share(4), 1.0, 1e-9) << "has no partner for a move";
  }
  EXPECT_GT(seen.size(), 1u) << "there are moves";
}

TEST(Balancer, MovesSumToZeroAndGoBothWays) {
  constexpr size_t kWorkers = 10;
  Cluster run({.warmup = 1000, .seed = 3});
  std::vector<double> moved(kWorkers, 0.0);
  double size = 0.0;
  for (Step step = 0; step < 400; ++step) {
    run.step(std::vector(kWorkers, 1.0));
    double sum = 0.0;
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      sum += run.share(worker) - 1.0;
      moved[worker] += run.share(worker) - 1.0;
      size = std::max(size, std::abs(run.share(worker) - 1.0));
    }
    EXPECT_NEAR(sum, 0.0, 1e-9);
  }
  // 400 coin tosses: five deviations.
  for (const double all : moved) EXPECT_LT(std::abs(all), 100.0 * size);
}

TEST(Balancer, EstimatesTheFixedPart) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const double a : {0.0, 0.2, 0.5}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", a " + std::to_string(a));
      std::vector<double> costs;
      for (size_t i = 0; i < 16; ++i) costs.push_back(0.5 + unit_draw(seed, i, 5));
      Cluster run({.warmup = 20, .seed = seed});
      for (Step step = 0; step < 300; ++step) run.step(costs, a);
      EXPECT_NEAR(run.balancer.fixed(), a, 0.15);  // the accuracy that the moves of a warm-up allow
      // The shares for the exact a: (T - a) / b.
      EXPECT_LT(run.imbalance(), 1.06);
      std::vector<double> right;
      balanced_shares(costs, 0.2, 3.0, 16.0, right);
      for (WorkerId worker = 0; worker < 16; ++worker) {
        EXPECT_NEAR(run.share(worker) / right[worker], 1.0, 0.06);
      }
    }
  }
}

TEST(Balancer, EstimatesALargeFixedPart) {
  std::vector<double> costs;
  for (size_t i = 0; i < 16; ++i) costs.push_back(0.4 + 0.02 * static_cast<double>(i));
  Cluster run({.warmup = 20});
  for (Step step = 0; step < 200; ++step) run.step(costs, 0.6);
  EXPECT_NEAR(run.balancer.fixed(), 0.6, 0.2);
}

TEST(Balancer, AFewRunTimesDoNotDetermineTheFixedPart) {
  // The fixed part is zero, but run-times vary: the first few steps of two workers must not give a
  // large estimate.
  double most = 0.0;
  double mean = 0.0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Cluster run({.warmup = 20, .seed = seed});
    for (Step step = 0; step < 4; ++step) {
      run.step(
          {std::exp(0.1 * unit_draw(seed, step, 0)), std::exp(0.1 * unit_draw(seed, step, 1))});
    }
    most = std::max(most, run.balancer.fixed());
    mean += run.balancer.fixed() / 200.0;
  }
  EXPECT_LT(mean, 0.1);
  EXPECT_LT(most, 0.3);
}

TEST(Balancer, TheFixedPartIsBounded) {
  Balancer balancer({.warmup = 200});
  for (Step step = 0; step < 200; ++step) {
    balancer.plan(step, first(8));
    balancer.learn({.step = step,
                    .seconds = std::vector(8, 1.0),
                    .known = std::vector(8, Known::kArrived),
                    .elapsed = 1.0,
                    .contributors = 8});
    EXPECT_LT(balancer.fixed(), 0.99);
  }
  EXPECT_GT(balancer.fixed(), 0.5);
}

TEST(Balancer, NoWorkerIsFavouredByItsNumber) {
  // Run-times that do not depend on the share: all workers look alike.
  Balancer balancer({.warmup = 100});
  for (Step step = 0; step < 101; ++step) {
    balancer.plan(step, first(8));
    balancer.learn({.step = step,
                    .seconds = std::vector(8, 1.0),
                    .known = std::vector(8, Known::kArrived),
                    .elapsed = 1.0,
                    .contributors = 8});
  }
  for (WorkerId worker = 0; worker < 8; ++worker) {
    EXPECT_NEAR(balancer.share(100, worker), 1.0, 0.3) << worker;
  }
}

TEST(Balancer, FollowsAWorkerThatBecomesSlowAndRecovers) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<double> costs(8, 1.0);
    Cluster run({.warmup = 10, .seed = seed});
    for (Step step = 0; step < 60; ++step) run.step(costs);
    EXPECT_NEAR(run.share(2), 1.0, 0.05);
    costs[2] = 3.0;
    for (Step step = 0; step < 12; ++step) run.step(costs);
    // A third of the others' share: 8 / (7 + 1/3) / 3.
    EXPECT_NEAR(run.share(2), 8.0 / (7.0 + 1.0 / 3.0) / 3.0, 0.05);
    EXPECT_NEAR(run.share(2) / run.share(5), 1.0 / 3.0, 0.05);
    for (Step step = 0; step < 30; ++step) run.step(costs);
    EXPECT_NEAR(run.share(2) / run.share(5), 1.0 / 3.0, 0.05) << "as long as it is slow";
    costs[2] = 1.0;
    for (Step step = 0; step < 12; ++step) run.step(costs);
    EXPECT_NEAR(run.share(2), 1.0, 0.08);
  }
}

TEST(Balancer, SharesSumToTheWorkersAliveWithinBounds) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const size_t workers = 2 + draw({seed, 1}) % 20;
    const BalanceSettings settings{.least = 0.2 + 0.8 * unit_draw(seed, 2),
                                   .most = 1.0 + 2.0 * unit_draw(seed, 3),
                                   .warmup = 5,
                                   .seed = seed};
    Cluster run(settings, seed % 2 == 0 ? 2.0 : 1e300);
    for (Step step = 0; step < 80; ++step) {
      SCOPED_TRACE(step);
      std::vector<double> costs;
      std::vector<WorkerId> alive;
      for (WorkerId worker = 0; worker < workers; ++worker) {
        costs.push_back(
            std::exp(2.0 * unit_draw(seed, worker, 5) + unit_draw(seed, step, worker, 6)));
        if (worker == step % workers || unit_draw(seed, step, worker, 7) < 0.9) {
          alive.push_back(worker);
        }
      }
      run.step(costs, 0.0, alive);
      double sum = 0.0;
      for (const WorkerId worker : alive) {
        sum += run.share(worker);
        ASSERT_GE(run.share(worker), settings.least - 1e-9);
        ASSERT_LE(run.share(worker), settings.most + 1e-9);
      }
      ASSERT_NEAR(sum, static_cast<double>(alive.size()), 1e-6);
    }
  }
}

TEST(Balancer, ABoundRaisesACostAndNeverLowersIt) {
  // Two equal runs, except for one step of worker 0: a bound in one run, nothing in the other.
  for (const double bound : {0.01, 0.5, 0.9, 1.1, 2.0, 10.0}) {
    SCOPED_TRACE(bound);
    Balancer with({.warmup = 5});
    Balancer without({.warmup = 5});
    for (Step step = 0; step < 60; ++step) {
      for (Balancer* const each : {&with, &without}) {
        each->plan(step, first(4));
        StepTimes observed{.step = step,
                           .seconds = {},
                           .known = std::vector(4, Known::kArrived),
                           .elapsed = 1.0,
                           .contributors = 4};
        for (WorkerId worker = 0; worker < 4; ++worker)
          observed.seconds.push_back(each->share(step, worker));
        if (step >= 50) {
          observed.known[0] = each == &with ? Known::kLonger : Known::kNothing;
          observed.seconds[0] = bound * each->share(step, 0);
        }
        each->learn(observed);
      }
      EXPECT_LE(with.share(step, 0), without.share(step, 0) + 1e-9);
    }
    if (bound <= 0.5) {
      EXPECT_EQ(with.share(59, 0), without.share(59, 0)) << "the bound is far below the estimate";
    }
    if (bound >= 2.0) {
      EXPECT_LT(with.share(59, 0), 0.95 * without.share(59, 0));
    }
  }
}

TEST(Balancer, ACensoredWorkerGetsLessUntilItIsInTime) {
  // After the warm-up, worker 0 has only bounds until its share fits.
  std::vector<double> costs(6, 1.0);
  Cluster run({.warmup = 5}, 1.3);
  for (Step step = 0; step < 20; ++step) run.step(costs);
  costs[0] = 2.5;
  for (Step step = 0; step < 200; ++step) run.step(costs);
  EXPECT_LE(run.times[0], 1.3);
  EXPECT_NEAR(run.share(0) / run.share(5), 0.4, 0.1);
}

TEST(Balancer, LearnsLateRunTimes) {
  Balancer balancer({.warmup = 5});
  Balancer unlearned({.warmup = 5});
  for (Step step = 0; step < 40; ++step) {
    for (Balancer* const each : {&balancer, &unlearned}) {
      each->plan(step, first(4));
      StepTimes observed{.step = step,
                         .seconds = {},
                         .known = std::vector(4, Known::kArrived),
                         .elapsed = 1.2,
                         .contributors = 4};
      for (WorkerId worker = 0; worker < 4; ++worker)
        observed.seconds.push_back(each->share(step, worker));
      if (step >= 5) {
        observed.known[3] = Known::kLonger;
        observed.seconds[3] = 1.01 * each->share(step, 3);
      }
      each->learn(observed);
    }
    if (step >= 5) balancer.learn_late(step, 3, 2.5 * balancer.share(step, 3));
  }
  EXPECT_LT(balancer.share(39, 3), 0.8 * unlearned.share(39, 3));
  balancer.learn_late(4000, 3, 2.5);  // a step that was not planned
  balancer.learn_late(39, 700, 2.5);  // an unknown worker
}

TEST(Balancer, ANewWorkerStartsWithAWholeShare) {
  Cluster run({.warmup = 5});
  std::vector<double> costs = {1.0, 1.0, 1.0, 2.0};
  for (Step step = 0; step < 30; ++step) run.step(costs);
  EXPECT_LT(run.share(3), 0.7);
  EXPECT_EQ(run.balancer.share(29, 4), 1.0) << "not in `alive`";
  EXPECT_EQ(run.balancer.share(29, 1000), 1.0);
  costs.push_back(0.5);
  run.step(costs);
  EXPECT_NEAR(run.share(4), 1.0, 0.25) << "except for the moves";
  for (Step step = 0; step < 10; ++step) run.step(costs);
  EXPECT_GT(run.share(4), 1.5);
  EXPECT_LT(run.imbalance(), 1.1);
}

TEST(Balancer, AShareIsRedistributedWhenAWorkerLeaves) {
  Cluster run({.warmup = 5});
  const std::vector<double> costs = {1.0, 1.0, 2.0, 0.5};
  for (Step step = 0; step < 30; ++step) run.step(costs);
  run.step(costs, 0.0, {0, 1, 2});
  EXPECT_NEAR(run.share(0) + run.share(1) + run.share(2), 3.0, 1e-9);
  EXPECT_NEAR(run.share(0) / run.share(2), 2.0, 0.15);
  EXPECT_EQ(run.share(3), 1.0) << "not expected";
  run.step(costs);
  EXPECT_NEAR(run.share(3) / run.share(0), 2.0, 0.15) << "its speed is known when it returns";
}

TEST(Balancer, AStepThatWasNotPlannedHasWholeShares) {
  Balancer balancer({.warmup = 2});
  EXPECT_EQ(balancer.share(0, 0), 1.0);
  const std::vector<double> costs = {1.0, 4.0};
  for (Step step = 0; step < 300; ++step) {
    balancer.plan(step, first(2));
    balancer.learn({.step = step,
                    .seconds = {balancer.share(step, 0), 4.0 * balancer.share(step, 1)},
                    .known = {Known::kArrived, Known::kArrived},
                    .elapsed = 1.0,
                    .contributors = 2});
  }
  EXPECT_NE(balancer.share(299, 1), 1.0);
  EXPECT_EQ(balancer.share(300, 1), 1.0) << "not planned yet";
  EXPECT_EQ(balancer.share(3, 1), 1.0) << "too old";
  // Nothing is learned from it.
  const double before = balancer.share(299, 1);
  balancer.learn({.step = 3,
                  .seconds = {1.0, 1.0},
                  .known = {Known::kArrived, Known::kArrived},
                  .elapsed = 1.0,
                  .contributors = 2});
  balancer.plan(300, first(2));
  EXPECT_NEAR(balancer.share(300, 1), before, 0.05);
}

TEST(Balancer, DealsWholeSamplesAndLearnsFromThem) {
  constexpr uint32_t kBatch = 10;
  Balancer balancer({.warmup = 0});
  const std::vector<WorkerId> alive = {0, 2, 3};
  const std::vector<double> costs = {1.0, 1.0, 2.0, 4.0};  // by worker, of a default mini-batch
  for (Step step = 0; step < 60; ++step) {
    const std::vector<uint32_t> samples = balancer.deal(step, alive, kBatch);
    ASSERT_EQ(samples.size(), alive.size());
    EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), 0u), 3 * kBatch) << step;
    StepTimes observed{
        .step = step, .seconds = std::vector(4, 0.0), .known = std::vector(4, Known::kNothing)};
    for (size_t i = 0; i < alive.size(); ++i) {
      EXPECT_EQ(balancer.share(step, alive[i]), samples[i] / static_cast<double>(kBatch))
          << "the exact shares";
      observed.known[alive[i]] = Known::kArrived;
      observed.seconds[alive[i]] = costs[alive[i]] * samples[i] / kBatch;
    }
    balancer.learn(observed);
  }
  // In proportion to 1, 1/2 and 1/4: 17.1, 8.6 and 4.3 of 30.
  EXPECT_EQ(balancer.deal(60, alive, kBatch), (std::vector<uint32_t>{17, 9, 4}));
}

TEST(Balancer, EqualSeedsGiveEqualShares) {
  const auto shares_of = [](uint64_t seed) {
    Cluster run({.warmup = 10, .seed = seed});
    std::vector<double> shares;
    for (Step step = 0; step < 50; ++step) {
      run.step(random_costs(step, 9));
      for (WorkerId worker = 0; worker < 9; ++worker) shares.push_back(run.share(worker));
    }
    return shares;
  };
  EXPECT_EQ(shares_of(4), shares_of(4));
  EXPECT_NE(shares_of(4), shares_of(5));
}

TEST(Balancer, PlansOneStepAheadAsWell) {
  // As in a run: a worker needs its share before the previous step has any results.
  Balancer balancer({.warmup = 10});
  const std::vector<double> costs = {1.0, 2.0, 0.7, 1.3};
  balancer.plan(0, first(4));
  std::vector<double> times(4);
  for (Step step = 0; step < 60; ++step) {
    balancer.plan(step + 1, first(4));
    for (WorkerId worker = 0; worker < 4; ++worker) {
      times[worker] = costs[worker] * balancer.share(step, worker);
    }
    balancer.learn({.step = step,
                    .seconds = times,
                    .known = std::vector(4, Known::kArrived),
                    .elapsed = 1.0,
                    .contributors = 4});
  }
  EXPECT_LT(
      *std::max_element(times.begin(), times.end()) / *std::min_element(times.begin(), times.end()),
      1.08);
}

}  // namespace
}  // namespace drover::testing_support

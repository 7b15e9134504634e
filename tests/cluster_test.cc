// The whole protocol without a network: the messages of the state machines of coordinator, shards
// and workers arrive in random order. For all orders, training must equal plain SGD, and workers
// that die and restart must neither block nor corrupt the run.
#include "support/cluster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <random>

namespace drover::testing_support {
namespace {

// Plain SGD on one machine with the weighted mean of all workers' gradients.
float expected_parameter(uint32_t workers, Step steps) {
  double value = 0.0;
  for (Step step = 0; step < steps; ++step) {
    double gradient = 0.0;
    double samples = 0.0;
    for (WorkerId worker = 0; worker < workers; ++worker) {
      gradient += (1.0 + worker) * (value - static_cast<double>(target(worker, step)));
      samples += 1.0 + worker;
    }
    value -= 0.1 * gradient / samples;
  }
  return static_cast<float>(value);
}

TEST(Cluster, EqualsPlainSgdUnderAnyOrderOfMessages) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto workers = static_cast<uint32_t>(1 + seed % 5);
    const auto shards = static_cast<uint32_t>(1 + seed % 4);
    Cluster cluster(seed, workers, shards, 12, seed % 2 == 0);
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.summaries().size(), 12u);
    for (const StepSummary& summary : cluster.summaries()) {
      ASSERT_EQ(summary.step.contributors, workers);
      ASSERT_EQ(summary.step.samples, workers * (workers + 1) / 2);
      if (summary.step.step + 1 == 12) continue;  // the run ends before its last reports arrive
      for (const ArrivalRecord& arrival : summary.arrivals) ASSERT_EQ(arrival.compute, Duration(7));
    }
    const float expected = expected_parameter(workers, 12);
    const auto parameters = cluster.parameters();
    for (size_t tensor = 0; tensor < cluster.layout().tensors().size(); ++tensor) {
      for (uint64_t i = 0; i < cluster.layout().tensors()[tensor].size; ++i) {
        ASSERT_NEAR(parameters[cluster.layout().offset(tensor) + i], expected, 1e-5f);
      }
    }
  }
}

TEST(Cluster, DeterministicRunsAgreeBitForBitUnderAnyOrder) {
  std::optional<std::vector<float>> first;
  for (uint64_t seed = 100; seed < 110; ++seed) {
    Cluster cluster(seed, 4, 2, 6, true);
    ASSERT_TRUE(cluster.run());
    const auto parameters = cluster.parameters();
    if (!first) first = parameters;
    ASSERT_EQ(parameters, *first) << "seed " << seed;
  }
}

void expect_plain_sgd(Cluster& cluster) {
  const auto parameters = cluster.parameters();
  const auto expected = cluster.expected_parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < parameters.size(); ++i) ASSERT_NEAR(parameters[i], expected[i], 1e-5f);
}

// A fixed cutoff above the number of remaining workers must not block the run.
TEST(Cluster, AFixedCutoffNeverHangsWhenThePoolShrinks) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Cluster cluster(seed, 64, 2, 4, false, std::make_unique<FixedChoice>(60));
    for (WorkerId worker = 0; worker < 27; ++worker) cluster.kill_at(random() % 6'000, worker);
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.summaries().size(), 4u);
  }
}

// A cutoff, all workers, or a time limit that may be shorter or longer than a step.
std::unique_ptr<Policy> random_choice(std::mt19937_64& random, uint32_t workers) {
  const auto cutoff = static_cast<uint32_t>(random() % 2 == 0 ? workers : 1 + random() % workers);
  if (random() % 2 == 0) return std::make_unique<FixedChoice>(cutoff);
  const double limit = 1e-6 * static_cast<double>(1 + random() % 200);
  return std::make_unique<FixedChoice>(cutoff, limit, static_cast<uint32_t>(1 + random() % cutoff));
}

TEST(Cluster, CutoffsLimitsAndDeathsNeverHangTheRun) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto workers = static_cast<uint32_t>(2 + random() % 4);
    Cluster cluster(seed, workers, static_cast<uint32_t>(1 + random() % 3), 8, random() % 2 == 0,
                    random_choice(random, workers));
    for (uint64_t i = random() % workers; i > 0; --i)
      cluster.kill_at(random() % 1500, static_cast<WorkerId>(random() % (workers - 1)));
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.summaries().size(), 8u);
    expect_plain_sgd(cluster);
  }
}

// Workers die and restart at any time, some of them several times, with cutoffs.
TEST(Cluster, RestartedWorkersNeitherBlockNorCorruptTheRun) {
  size_t joined = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto workers = static_cast<uint32_t>(2 + random() % 4);
    Cluster cluster(seed, workers, static_cast<uint32_t>(1 + random() % 3), 12, random() % 2 == 0,
                    random_choice(random, workers));
    for (uint64_t i = 1 + random() % 6; i > 0; --i) {
      const auto victim = static_cast<WorkerId>(random() % (workers - 1));
      const size_t death = random() % 2'000;
      cluster.kill_at(death, victim);
      cluster.revive_at(death + random() % 200, victim);
    }
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.summaries().size(), 12u);
    for (const StepSummary& summary : cluster.summaries()) {
      ASSERT_LE(summary.step.contributors, workers);
      ASSERT_LE(summary.step.samples, workers * (workers + 1) / 2);
      ASSERT_LE(summary.arrivals.size(), workers);
    }
    expect_plain_sgd(cluster);
    joined += cluster.count_events(EventKind::kJoined);
  }
  EXPECT_GT(joined, 200u) << "the test is about joining";
}

// --- asynchronous runs

std::unique_ptr<Cluster> free_cluster(uint64_t seed, uint32_t workers, uint32_t shards, Step steps,
                                      std::optional<uint64_t> staleness) {
  return std::make_unique<Cluster>(seed, workers, shards, steps, false, nullptr,
                                   Asynchronous{staleness});
}

void expect_each_applied(Cluster& cluster) {
  const auto parameters = cluster.parameters();
  const auto expected = cluster.parameters_after_each();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < parameters.size(); ++i) ASSERT_NEAR(parameters[i], expected[i], 1e-4f);
}

TEST(AsynchronousCluster, EachGradientIsUsedOnceAndARoundHasOneForEachWorker) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto workers = static_cast<uint32_t>(1 + random() % 5);
    const auto shards = static_cast<uint32_t>(1 + random() % 4);
    std::optional<uint64_t> staleness;
    if (seed % 3 != 0) staleness = random() % 3;
    const auto cluster = free_cluster(seed, workers, shards, 10, staleness);
    const auto end = cluster->run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster->summaries().size(), 10u);
    for (const StepSummary& summary : cluster->summaries()) {
      ASSERT_EQ(summary.step.contributors, workers);
      for (const ArrivalRecord& arrival : summary.arrivals) ASSERT_FALSE(arrival.censored);
    }
    for (const Block& block : cluster->blocks().blocks)
      ASSERT_EQ(cluster->applied().at(block.id).size(), 10u * workers);
    expect_each_applied(*cluster);
  }
}

TEST(AsynchronousCluster, OneWorkerComputesPlainSgd) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto cluster = free_cluster(seed, 1, static_cast<uint32_t>(1 + seed % 3), 12, {});
    ASSERT_TRUE(cluster->run());
    const float expected = expected_parameter(1, 12);
    const auto parameters = cluster->parameters();
    for (const Block& block : cluster->blocks().blocks) {
      for (uint64_t i = 0; i < block.length; ++i)
        ASSERT_NEAR(parameters[block.offset + i], expected, 1e-5f);
    }
  }
}

TEST(AsynchronousCluster, DeathsAndRestartsNeitherBlockNorCorruptTheRun) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto workers = static_cast<uint32_t>(2 + random() % 4);
    std::optional<uint64_t> staleness;
    if (random() % 3 != 0) staleness = random() % 3;
    const auto cluster =
        free_cluster(seed, workers, static_cast<uint32_t>(1 + random() % 3), 12, staleness);
    for (uint64_t i = 1 + random() % 6; i > 0; --i) {
      const auto victim = static_cast<WorkerId>(random() % (workers - 1));
      const size_t death = random() % 2'000;
      cluster->kill_at(death, victim);
      if (seed % 2 == 0) cluster->revive_at(death + random() % 200, victim);
    }
    const auto end = cluster->run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster->summaries().size(), 12u);
    for (const StepSummary& summary : cluster->summaries())
      ASSERT_LE(summary.step.contributors, workers);
    expect_each_applied(*cluster);
  }
}

TEST(Cluster, DeathOfWorkersNeverHangsTheRun) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto workers = static_cast<uint32_t>(2 + random() % 4);
    Cluster cluster(seed, workers, static_cast<uint32_t>(1 + random() % 3), 8, random() % 2 == 0);
    // All workers but one may die, at any time from before the handshake to after the end.
    const uint32_t deaths = static_cast<uint32_t>(1 + random() % (workers - 1));
    for (uint32_t i = 0; i < deaths; ++i)
      cluster.kill_at(random() % 1500, static_cast<WorkerId>(random() % (workers - 1)));
    const auto end = cluster.run();
    ASSERT_TRUE(end) << "the run hangs";
    ASSERT_EQ(end->outcome, RunOutcome::kCompleted) << end->reason;
    ASSERT_EQ(cluster.summaries().size(), 8u);
    expect_plain_sgd(cluster);
    for (const StepSummary& summary : cluster.summaries())
      ASSERT_GE(summary.step.contributors + 0u, 1u);
  }
}

}  // namespace
}  // namespace drover::testing_support

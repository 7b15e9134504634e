#include "policy/joint_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/random_draw.h"
#include "policy/close_rule.h"
#include "policy/policy.h"

namespace drover {
namespace {

JointSamples random_samples(uint64_t seed, uint32_t rows, uint32_t workers, bool shares) {
  JointSamples samples;
  samples.times.resize(rows, workers);
  double sum = 0.0;
  for (uint32_t k = 0; k < rows; ++k) {
    const auto unit = [&](uint64_t i, uint64_t use) {
      return unit_interval(draw({seed, static_cast<uint64_t>(Purpose::kRunTimes), k, i, use}));
    };
    const std::span<float> row = samples.times.row(k);
    for (uint32_t i = 0; i < workers; ++i)
      row[i] = static_cast<float>(1.0 + (unit(i, 1) < 0.2 ? 3.0 : 0.3) * unit(i, 2));
    std::sort(row.begin(), row.end());
    samples.weights.push_back(0.1 + unit(0, 3));
    sum += samples.weights.back();
    float gradients = 0.0F;
    for (uint32_t i = 0; i < workers && shares; ++i)
      samples.gradients.push_back(gradients += static_cast<float>(0.5 + unit(i, 4)));
  }
  for (double& weight : samples.weights) weight /= sum;
  samples.times.sorted = true;
  return samples;
}

// What a plan comes to, sample by sample, as a step would end.
double slow_rate(const JointPlan& plan, const JointSamples& samples, const JointTerms& terms) {
  double gradients = 0.0;
  double time = terms.overhead;
  for (uint32_t k = 0; k < samples.times.samples; ++k) {
    const std::span<const float> row = samples.times.row(k);
    const StepClose close =
        close_of({.cutoff = plan.cutoff, .time_limit = plan.time_limit, .at_least = plan.at_least},
                 std::vector<double>(row.begin(), row.end()));
    gradients += samples.weights[k] * terms.progress(samples.gradients_of(k, close.contributors));
    time += samples.weights[k] * close.elapsed;
  }
  return gradients / time;
}

TEST(JointSearch, JudgesAPlanAsStepsWouldEnd) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const JointSamples samples = random_samples(seed, 20, 6, seed % 2 == 0);
    const JointTerms terms{.overhead = 0.2, .noise = seed % 3 == 0 ? 4.0 : 0.0};
    for (uint32_t cutoff = 1; cutoff <= 6; ++cutoff) {
      for (const double limit : {0.5, 1.1, 1.5, 9.0, kNoTimeLimit}) {
        const JointPlan plan{.cutoff = cutoff, .time_limit = limit, .at_least = (cutoff + 1) / 2};
        EXPECT_NEAR(JointSearch::judged(plan, samples, terms).rate(),
                    slow_rate(plan, samples, terms), 1e-9);
      }
    }
  }
}

TEST(JointSearch, ComesCloseToTheBestOfAllPairs) {
  JointSearch search;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const JointSamples samples = random_samples(seed, 12, 6, seed % 2 == 0);
    const JointTerms terms{.overhead = seed % 3 == 0 ? 1.0 : 0.0};
    double best = 0.0;
    for (uint32_t cutoff = 1; cutoff <= 6; ++cutoff) {
      best =
          std::max(best, slow_rate({.cutoff = cutoff, .time_limit = kNoTimeLimit}, samples, terms));
      for (const float limit : samples.times.times) {
        best =
            std::max(best, slow_rate({.cutoff = cutoff, .time_limit = static_cast<double>(limit)},
                                     samples, terms));
      }
    }
    const JointPlan found = search.best(samples, terms);
    EXPECT_NEAR(found.rate(), slow_rate(found, samples, terms), 1e-9);
    EXPECT_GE(found.rate(), 0.93 * best) << "seed " << seed;
  }
}

TEST(JointSearch, LeavesTheTimeOfARareStallToALimit) {
  JointSamples samples;
  samples.times.resize(10, 4);
  for (uint32_t k = 0; k < 10; ++k) {
    const std::span<float> row = samples.times.row(k);
    std::fill(row.begin(), row.end(), 1.0F);
    if (k == 3) row[3] = 30.0F;
  }
  samples.times.sorted = true;
  samples.weights.assign(10, 0.1);
  JointSearch search;
  const JointPlan plan = search.best(samples, {});
  EXPECT_DOUBLE_EQ(plan.rate(), 3.9);
  EXPECT_LT(plan.time_limit, 1.3);
}

// With unequal shares it counts the work that arrives, not the workers.
TEST(JointSearch, CountsShares) {
  JointSamples samples;
  samples.times.resize(1, 4);
  const float times[] = {1.0F, 1.0F, 1.0F, 1.5F};
  std::copy(std::begin(times), std::end(times), samples.times.row(0).begin());
  samples.times.sorted = true;
  samples.weights = {1.0};
  JointSearch search;
  EXPECT_EQ(search.best(samples, {}).cutoff, 3U);
  samples.gradients = {0.2F, 0.4F, 0.6F, 3.6F};
  EXPECT_EQ(search.best(samples, {}).cutoff, 4U) << "the last one has nearly all of the work";
}

}  // namespace
}  // namespace drover

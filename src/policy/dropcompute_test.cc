#include "policy/dropcompute.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/test_text.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

TEST(BestLimit, DropsAnExpensiveStraggler) {
  // Without the limit 4 gradients in 10 s; with it 3 in little more than 1 s.
  const LimitEffect effect = best_limit({{1.0, 1.0, 10.0, 1.0}, {1.0, 10.0, 1.0, 1.0}}, 0.0, 200);
  EXPECT_EQ(effect.limit, 1.0);
  EXPECT_DOUBLE_EQ(effect.dropped, 0.25);
  EXPECT_DOUBLE_EQ(effect.saved, 0.9);
  EXPECT_NEAR(effect.gain(), 0.75 / 0.1 - 1.0, 1e-9);
}

TEST(BestLimit, DropsNoGradientsIfThatIsBest) {
  const LimitEffect effect = best_limit({{1.0, 1.01, 1.02}, {1.0, 1.0, 1.02}}, 5.0, 200);
  EXPECT_EQ(effect.limit, 1.02);
  EXPECT_EQ(effect.dropped, 0.0);
  EXPECT_DOUBLE_EQ(effect.gain(), 0.0);
}

TEST(BestLimit, AStepWithoutTimelyArrivalsLastsUntilTheFirst) {
  const LimitEffect effect = best_limit({{1.0, 1.0, 1.0, 9.0}, {2.0, 2.0, 2.0, 2.0}}, 0.0, 2);
  // With limit 1 there are 3 + 4 gradients in 1 + 2, with limit 9 there are 4 + 4 in 9 + 2. At
  // limit 1, all of the second step arrive at 2, although it waits only for the first of them.
  EXPECT_EQ(effect.limit, 1.0);
  EXPECT_DOUBLE_EQ(effect.dropped, 1.0 - 4.0 / 8.0);
  EXPECT_DOUBLE_EQ(effect.saved, 1.0 - 3.0 / 11.0);
}

TEST(BestLimit, MatchesExhaustiveSearch) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Trace trace = make_trace(Shape::kHeavyTail, seed, 8, 10);
    constexpr double kOverhead = 0.2;
    double lowest = 1e300;
    double highest = 0.0;
    for (const auto& step : trace) {
      lowest = std::min(lowest, *std::min_element(step.begin(), step.end()));
      highest = std::max(highest, *std::max_element(step.begin(), step.end()));
    }
    double best = -1.0;
    for (int i = 0; i < 200; ++i) {
      const double limit = i == 199 ? highest : lowest + (highest - lowest) * i / 199.0;
      double gradients = 0.0;
      double time = 0.0;
      double raw = 0.0;
      for (auto step : trace) {
        std::sort(step.begin(), step.end());
        const auto in_time =
            std::count_if(step.begin(), step.end(), [&](double each) { return each <= limit; });
        gradients += std::max(1.0, static_cast<double>(in_time));
        time += kOverhead + (in_time == 10 ? step.back() : std::max(limit, step.front()));
        raw += kOverhead + step.back();
      }
      best = std::max(best, (gradients / 80.0) / (time / raw) - 1.0);
    }
    EXPECT_NEAR(best_limit(trace, kOverhead, 200).gain(), best, 1e-9);
  }
}

TEST(DropCompute, KeepsTheLimitOfTheWarmUp) {
  Trace trace(40, std::vector(10, 1.0));
  for (auto& step : trace) step[3] = 8.0;
  for (size_t step = 20; step < 40; ++step) trace[step] = std::vector(10, 2.0);
  const auto walked = walk("dropcompute", trace, 0.0, {.warmup = 10});
  EXPECT_EQ(walked[9].choice.time_limit, kNoTimeLimit);
  for (size_t step = 10; step < 40; ++step) EXPECT_EQ(walked[step].choice.time_limit, 1.0);
  EXPECT_THAT(walked[10].choice.reason, mentions("dropcompute", 1, 10, "87.5"));
  EXPECT_EQ(walked[15].close.contributors, 9u);
  EXPECT_EQ(walked[30].close.contributors, 1u) << "the limit does not follow changes";
}

}  // namespace
}  // namespace drover::testing_support

#include "policy/bandit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/test_text.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

TEST(Bandit, LearnsAllSmallerCutoffsFromOneStep) {
  BanditPolicy policy({}, Objective::kThroughput, 1);
  const std::vector<WorkerId> alive = {0, 1, 2, 3};
  policy.decide({0, alive, 0.0});
  policy.learn({0, {1.0, 1.0, 1.0, 5.0}, std::vector(4, Known::kArrived), 5.0, 4});
  const Choice choice = policy.decide({1, alive, 0.0});
  EXPECT_EQ(choice.cutoff, 3u);
  EXPECT_THAT(choice.reason, mentions("bandit", 3, 4));
}

TEST(Bandit, GoodputUsesTheNewestNoise) {
  BanditPolicy policy({}, Objective::kGoodput, 1);
  const std::vector<WorkerId> alive = {0, 1, 2, 3};
  policy.decide({0, alive, 0.0});
  policy.learn({0, {1.0, 1.0, 1.2, 5.0}, std::vector(4, Known::kArrived), 5.0, 4});
  // 1, 2, 2.5, 0.8 gradients per second.
  EXPECT_THAT(policy.decide({1, alive, 0.0}).reason, mentions("bandit", 3, 4, "2.5"));
  // With a noise scale of 1, progress is 1, 4/3, 3/2 and 8/5.
  const Choice choice = policy.decide({1, alive, 0.0, 1.0});
  EXPECT_EQ(choice.cutoff, 2u);
  EXPECT_THAT(choice.reason, mentions("bandit", 2, 4, "1.33", 1));
}

TEST(Bandit, ComesCloseToTheBestFixedCutoff) {
  constexpr double kOverhead = 0.1;
  for (const Shape shape : kShapes) {
    for (const Objective objective : {Objective::kThroughput, Objective::kRate}) {
      SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)));
      Trace trace = make_trace(shape, 21, 600, 20);
      if (shape == Shape::kSlowNode)
        trace.resize(300);  // the part without change; the next test has the rest
      double best = 0.0;
      for (int k = 1; k <= 20; ++k) {
        const auto walked = walk("static:k=" + std::to_string(k), trace, kOverhead);
        best = std::max(best, throughput(walked, kOverhead, 100));
      }
      const auto walked = walk("bandit", trace, kOverhead, {.objective = objective});
      // Under a heavy tail, exploration is expensive, and 50 steps hardly distinguish cutoffs.
      const double enough = shape == Shape::kHeavyTail ? 0.9 : 0.97;
      EXPECT_GT(throughput(walked, kOverhead, 100), enough * best);
    }
  }
}

TEST(Bandit, RaisesTheCutoffWhenSlowWorkersRecover) {
  for (const Objective objective : {Objective::kThroughput, Objective::kRate}) {
    Trace trace(500, std::vector(12, 1.0));
    for (size_t step = 0; step < 500; ++step) {
      std::fill_n(trace[step].begin(), 4, step < 150 ? 3.0 : 1.01);
    }
    const auto walked = walk("bandit", trace, 0.1, {.objective = objective});
    EXPECT_EQ(walked[100].choice.cutoff, 8u) << walked[100].choice.reason;
    EXPECT_EQ(walked.back().choice.cutoff, 12u) << walked.back().choice.reason;
  }
}

TEST(Bandit, ReportsExploration) {
  Trace trace(500, std::vector(12, 1.0));
  for (auto& step : trace) std::fill_n(step.begin(), 4, 3.0);
  const auto walked = walk("bandit", trace);
  const std::string best = without(walked.back().choice.reason, "8");
  size_t tried = 0;
  for (size_t step = 100; step < walked.size(); ++step) {
    const Choice& choice = walked[step].choice;
    if (choice.cutoff == 8u) continue;
    ++tried;
    EXPECT_GT(choice.cutoff, 8u) << "explores only larger cutoffs";
    EXPECT_NE(without(choice.reason, std::to_string(choice.cutoff)), best) << "another reason";
  }
  EXPECT_GE(tried, 1u);
  EXPECT_LE(tried, 20u) << "exploration costs two thirds of the throughput";
}

TEST(Bandit, KeepsItsKnowledgeWhenWorkersJoinAndLeave) {
  Trace trace(60, std::vector(200, 1.0));
  for (size_t step = 0; step < trace.size(); ++step) {
    std::fill_n(trace[step].begin(), 50, 9.0);
    if (step >= 40) std::fill_n(trace[step].begin() + 100, 100, kAbsent);
  }
  const auto walked = walk("bandit", trace, 0.0);
  // 64 arms are spread over 200 cutoffs: 150 is one of them, or next to one.
  EXPECT_NEAR(walked[39].choice.cutoff, 150.0, 3.5);
  // With 100 workers, three quarters were best before; one step shows that now a half is.
  EXPECT_NEAR(walked[40].choice.cutoff, 75.0, 2.0);
  EXPECT_LE(walked.back().choice.cutoff, 51u);
}

}  // namespace
}  // namespace drover::testing_support

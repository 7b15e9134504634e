// The contract of all policies: they decide only from what a run would have seen, they are
// deterministic, and the cutoff is at most the number of workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/test_text.h"
#include "policy/walk.h"

namespace drover::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::Not;

// All policies with a cutoff, with default options, and some with other options.
std::vector<std::string> texts() {
  std::vector<std::string> all;
  for (const PolicyInfo& info : policies()) {
    if (info.name == "async" || info.name == "ssp") continue;
    all.emplace_back(info.name);
    if (info.name == "deadline") all.back() += ":1.1";
  }
  for (const char* more :
       {"static:0.5", "static:k=7", "deadline:0.01", "mad:1:window=3:quorum=0.2",
        "bandit:5:explore=2", "dbw:noise=2:window=2", "dbw:noise=1000", "elfving-online:window=3",
        "ecdf:pooled", "ecdf:half-life=50", "ewma:0.1"}) {
    all.emplace_back(more);
  }
  return all;
}

std::vector<PolicySettings> settings() {
  return {{.objective = Objective::kThroughput, .warmup = 5, .seed = 3},
          {.objective = Objective::kRate, .warmup = 0, .seed = 4},
          {.objective = Objective::kGoodput, .warmup = 5, .seed = 5}};
}

void expect_same_decisions(const std::vector<Walked>& a, const std::vector<Walked>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t step = 0; step < a.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    ASSERT_EQ(a[step].choice.cutoff, b[step].choice.cutoff) << a[step].choice.reason;
    ASSERT_EQ(a[step].choice.time_limit, b[step].choice.time_limit);
    ASSERT_EQ(a[step].choice.at_least, b[step].choice.at_least);
    ASSERT_EQ(a[step].choice.reason, b[step].choice.reason);
    ASSERT_EQ(a[step].shares, b[step].shares);
    ASSERT_EQ(a[step].reviews.size(), b[step].reviews.size());
    for (size_t i = 0; i < a[step].reviews.size(); ++i) {
      ASSERT_EQ(a[step].reviews[i].at, b[step].reviews[i].at);
    }
  }
}

// The trace with all run-times after the closes replaced by other late ones.
// late.
Trace with_another_future(const Trace& trace, const std::vector<Walked>& walked, uint64_t seed) {
  Trace other = trace;
  for (size_t step = 0; step < trace.size(); ++step) {
    for (size_t worker = 0; worker < trace[step].size(); ++worker) {
      const double share = walked[step].shares.empty() ? 1.0 : walked[step].shares[worker];
      const double elapsed = walked[step].close.elapsed;
      if (!(trace[step][worker] * share > elapsed)) continue;
      const double u = unit_draw(seed, step, worker, 9);
      other[step][worker] = u < 0.1   ? std::numeric_limits<double>::infinity()
                            : u < 0.2 ? 1e300
                            : u < 0.3 ? std::nextafter(elapsed, 1e300)
                                      : elapsed * (1.0 + 10.0 * u);
      // The run-time of the share; rounding must not make it early.
      other[step][worker] /= share;
      while (other[step][worker] * share <= elapsed)
        other[step][worker] = std::nextafter(other[step][worker], 1e300);
    }
  }
  return other;
}

TEST(EveryPolicy, UsesOnlyWhatARunHasSeen) {
  for (const std::string& text : texts()) {
    if (text == "oracle") continue;
    for (const Shape shape : kShapes) {
      for (const PolicySettings& each : settings()) {
        for (const DecisionLimits& limits :
             {DecisionLimits{},
              DecisionLimits{.at_least = 2, .max_wait = 1.3, .min_inclusion = 0.2}}) {
          SCOPED_TRACE(text + ", shape " + std::to_string(static_cast<int>(shape)) + ", warm-up " +
                       std::to_string(each.warmup));
          const Trace trace = make_trace(shape, each.seed, 60, 9, 0.05);
          const auto walked = walk(text, trace, 0.1, each, limits);
          for (uint64_t seed = 1; seed <= 3; ++seed) {
            const Trace other = with_another_future(trace, walked, seed);
            expect_same_decisions(walked, walk(text, other, 0.1, each, limits));
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(EveryPolicy, UsesOnlyWhatARunHasSeenWithReviewsAndBalance) {
  size_t reviews = 0;
  for (const std::string& text : texts()) {
    if (text == "oracle") continue;
    for (const Shape shape : kShapes) {
      for (PolicySettings each : settings()) {
        SCOPED_TRACE(text + ", shape " + std::to_string(static_cast<int>(shape)) + ", warm-up " +
                     std::to_string(each.warmup));
        each.live = true;
        const DecisionLimits limits{.at_least = 2, .max_wait = 2.5};
        const Trace trace = make_trace(shape, each.seed, 25, 9, 0.05);
        for (const auto& balance :
             {std::optional<BalanceSettings>(), std::optional(BalanceSettings{.warmup = 5})}) {
          const auto walked = walk(text, trace, 0.1, each, limits, balance);
          for (const Walked& step : walked) reviews += step.reviews.size();
          const Trace other = with_another_future(trace, walked, 1);
          expect_same_decisions(walked, walk(text, other, 0.1, each, limits, balance));
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(reviews, 1000u);
}

// The trace up to a time inside one step, and different from there on: workers that have not
// arrived by then get other, later run-times, and so do all workers in later steps.
Trace with_another_end(const Trace& trace, const std::vector<Walked>& walked, size_t step,
                       double moment, uint64_t seed) {
  Trace other = trace;
  for (size_t worker = 0; worker < trace[step].size(); ++worker) {
    const double share = walked[step].shares.empty() ? 1.0 : walked[step].shares[worker];
    double& time = other[step][worker];
    if (!(time * share > moment)) continue;
    time = moment / share * (1.0 + 1e-6 + 3.0 * unit_draw(seed, step, worker, 11));
  }
  for (size_t later = step + 1; later < trace.size(); ++later) {
    for (double& time : other[later]) time *= 0.5 + unit_draw(seed, later, 12);
  }
  return other;
}

// Events after a time inside a step must not influence the decision at that time.
TEST(EveryPolicy, UsesOnlyThePastInsideAStep) {
  size_t compared = 0;
  for (const std::string& text : texts()) {
    if (text == "oracle") continue;
    for (const Shape shape : {Shape::kHeavyTail, Shape::kSlowNode}) {
      for (PolicySettings each : settings()) {
        SCOPED_TRACE(text);
        each.live = true;
        const auto balance = each.objective == Objective::kRate
                                 ? std::optional(BalanceSettings{.warmup = 5})
                                 : std::nullopt;
        const Trace trace = make_trace(shape, each.seed, 16, 9);
        const auto walked = walk(text, trace, 0.1, each, {}, balance);
        for (size_t step = 0; step < walked.size(); step += 4) {
          for (size_t i = 0; i < walked[step].reviews.size(); i += 3) {
            const double moment = walked[step].reviews[i].at;
            const Trace other = with_another_end(trace, walked, step, moment, i + 1);
            const auto again = walk(text, other, 0.1, each, {}, balance);
            ASSERT_GT(again[step].reviews.size(), i) << "step " << step;
            for (size_t j = 0; j <= i; ++j) {
              const Reviewed& a = walked[step].reviews[j];
              const Reviewed& b = again[step].reviews[j];
              ASSERT_EQ(a.at, b.at);
              ASSERT_EQ(a.choice.has_value(), b.choice.has_value());
              if (!a.choice) continue;
              ASSERT_EQ(a.choice->reason, b.choice->reason);
              ASSERT_EQ(a.choice->cutoff, b.choice->cutoff);
              ASSERT_EQ(a.choice->time_limit, b.choice->time_limit);
              ASSERT_EQ(a.choice->review.at, b.choice->review.at);
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 200u);
}

// A policy that reads future run-times from the trace.
class PeekingPolicy : public Policy {
 public:
  explicit PeekingPolicy(const Trace& trace) : trace_(trace) {}
  Choice decide(const Situation& situation) override {
    const auto alive = static_cast<uint32_t>(situation.alive.size());
    if (situation.step == 0) return {.cutoff = (alive + 1) / 2, .reason = "nothing to see yet"};
    const auto& before = trace_[situation.step - 1];
    return {.cutoff = (alive + 1) / 2,
            .time_limit = *std::max_element(before.begin(), before.end()),
            .reason = "uses the future"};
  }
  void learn(const StepTimes&) override {}
  void learn_late(Step, WorkerId, double) override {}

 private:
  const Trace& trace_;
};

TEST(EveryPolicy, DetectsAPolicyThatUsesTheFuture) {
  const Trace trace = make_trace(Shape::kHeavyTail, 1, 10, 9);
  Decider decider(std::make_unique<PeekingPolicy>(trace), {});
  const auto walked = walk(decider, trace, 0.1);
  const Trace other = with_another_future(trace, walked, 1);
  Decider again(std::make_unique<PeekingPolicy>(other), {});
  EXPECT_NE(walked[1].choice.time_limit, walk(again, other, 0.1)[1].choice.time_limit);
}

TEST(EveryPolicy, IsDeterministic) {
  for (const std::string& text : texts()) {
    for (const PolicySettings& each : settings()) {
      SCOPED_TRACE(text);
      const Trace trace = make_trace(Shape::kHeavyTail, 5, 50, 12, 0.1);
      expect_same_decisions(walk(text, trace, 0.1, each), walk(text, trace, 0.1, each));
      PolicySettings live = each;
      live.live = true;
      const BalanceSettings balance{.warmup = 5, .seed = each.seed};
      expect_same_decisions(walk(text, trace, 0.1, live), walk(text, trace, 0.1, live));
      expect_same_decisions(walk(text, trace, 0.1, live, {}, balance),
                            walk(text, trace, 0.1, live, {}, balance));
    }
  }
}

TEST(EveryPolicy, LimitsTheCutoffAndGivesAReason) {
  for (const std::string& text : texts()) {
    for (const Shape shape : kShapes) {
      for (const PolicySettings& each : settings()) {
        // Few, many, often absent; 70 is more than a bandit has arms.
        for (const auto& [workers, absent] :
             {std::pair<size_t, double>{1, 0.0}, {2, 0.5}, {7, 0.9}, {70, 0.3}}) {
          SCOPED_TRACE(text + " with " + std::to_string(workers) + " workers");
          for (const Walked& step :
               walk(text, make_trace(shape, 7, 40, workers, absent), 0.0, each)) {
            ASSERT_GE(step.choice.at_least, 1u);
            ASSERT_LE(step.choice.at_least, step.choice.cutoff);
            ASSERT_LE(step.choice.cutoff, step.alive) << step.choice.reason;
            ASSERT_GT(step.choice.time_limit, 0.0);
            ASSERT_FALSE(step.choice.reason.empty());
            ASSERT_EQ(step.choice.reason.find('\n'), std::string::npos);
          }
        }
      }
    }
  }
}

TEST(EveryPolicy, LimitsTheCutoffInsideAStep) {
  size_t closed = 0;
  for (const std::string& text : texts()) {
    for (const Shape shape : kShapes) {
      for (PolicySettings each : settings()) {
        each.live = true;
        for (const auto& [workers, absent] :
             {std::pair<size_t, double>{1, 0.0}, {2, 0.5}, {7, 0.9}, {30, 0.3}}) {
          SCOPED_TRACE(text + " with " + std::to_string(workers) + " workers");
          const Trace trace = make_trace(shape, 7, 20, workers, absent);
          for (const Walked& step :
               walk(text, trace, 0.0, each, {}, BalanceSettings{.warmup = 5})) {
            ASSERT_GE(step.close.contributors, 1u);
            ASSERT_LE(step.close.contributors, step.alive);
            ASSERT_LE(step.close.elapsed, step.longest);
            for (const Reviewed& review : step.reviews) {
              if (!review.choice) continue;
              const Choice& choice = *review.choice;
              ASSERT_GE(choice.at_least, 1u);
              ASSERT_LE(choice.at_least, choice.cutoff);
              ASSERT_LE(choice.cutoff, step.alive);
              ASSERT_FALSE(choice.reason.empty());
              ASSERT_EQ(choice.reason.find("inf"), std::string::npos) << choice.reason;
              // A cutoff that is reached already closes the step.
              closed += review.at == step.close.elapsed && choice.cutoff == step.close.contributors
                            ? 1
                            : 0;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(closed, 100u) << "reviews do close steps";
}

TEST(EveryPolicy, ToleratesWorkersThatJoinAndLeave) {
  for (const std::string& text : texts()) {
    for (const PolicySettings& each : settings()) {
      SCOPED_TRACE(text);
      Trace trace = make_trace(Shape::kDifferent, 11, 120, 20);
      for (size_t step = 0; step < trace.size(); ++step) {
        const size_t there = step < 30 ? 20 : step < 60 ? 3 : step < 61 ? 1 : step < 90 ? 20 : 11;
        for (size_t worker = there; worker < 20; ++worker) trace[step][worker] = kAbsent;
        if (step < 10) trace[step].resize(15);  // the others have not joined yet
      }
      PolicySettings live = each;
      live.live = true;
      for (const auto& walked : {walk(text, trace, 0.1, each),
                                 walk(text, trace, 0.1, live, {}, BalanceSettings{.warmup = 5})}) {
        for (const Walked& step : walked) {
          ASSERT_GE(step.choice.cutoff, 1u);
          ASSERT_LE(step.choice.cutoff, step.alive);
        }
      }
    }
  }
}

TEST(EveryPolicy, LearnsLateRunTimes) {
  for (const std::string& text : texts()) {
    if (text == "oracle") continue;
    SCOPED_TRACE(text);
    auto policy = make_policy(text, settings().front());
    ASSERT_TRUE(policy.ok());
    Decider decider(std::move(policy).value(), {});
    const Trace trace = make_trace(Shape::kHeavyTail, 13, 60, 8);
    for (Step step = 0; step < trace.size(); ++step) {
      const std::vector<WorkerId> alive = alive_in(trace[step]);
      std::vector<double> sorted = trace[step];
      std::sort(sorted.begin(), sorted.end());
      const Choice choice = decider.decide({step, alive, 0.1});
      const StepClose close = close_of(choice, sorted);
      decider.learn(known_of(step, trace[step], close));
      for (const WorkerId worker : alive) {
        if (trace[step][worker] > close.elapsed) {
          decider.learn_late(step, worker, trace[step][worker]);
        }
      }
      decider.learn_late(step + 1000, 3, 1.0);  // an unknown step
      ASSERT_GE(choice.cutoff, 1u);
      ASSERT_LE(choice.cutoff, 8u);
    }
  }
}

TEST(EveryPolicy, WaitsForAllInTheWarmUpIfItLearns) {
  for (const char* text :
       {"mad", "bandit", "dbw", "dropcompute", "elfving", "elfving-online", "ecdf", "ewma"}) {
    const auto walked = walk(text, make_trace(Shape::kHeavyTail, 1, 30, 10), 0.1, {.warmup = 20});
    for (size_t step = 0; step < 20; ++step) {
      EXPECT_EQ(walked[step].close.contributors, 10u) << text;
      EXPECT_THAT(walked[step].choice.reason, AllOf(mentions(10, step, 20), Not(mentions(text))));
    }
    EXPECT_THAT(walked[20].choice.reason, mentions(text));
  }
}

}  // namespace
}  // namespace drover::testing_support

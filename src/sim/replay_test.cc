#include "sim/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random_draw.h"
#include "core/text.h"
#include "sim/observed_policy.h"

namespace drover {
namespace {

using ::testing::HasSubstr;

const double kAbsent = std::nan("");

Trace make_trace(uint32_t workers, std::vector<double> times) {
  Trace trace;
  trace.path = "made.csv";
  for (uint32_t i = 0; i < workers; ++i) trace.workers.push_back("w" + std::to_string(i));
  trace.times = std::move(times);
  return trace;
}

// Run-times with a heavy tail, workers of different speed, and one in twenty not recorded.
Trace random_trace(uint64_t seed, uint32_t workers, Step steps) {
  std::vector<double> times;
  for (Step step = 0; step < steps; ++step) {
    for (uint32_t worker = 0; worker < workers; ++worker) {
      const double drawn = unit_interval(draw({seed, step, worker}));
      const double speed = 1.0 + unit_interval(draw({seed, worker}));
      const bool absent = worker > 1 && unit_interval(draw({seed, step, worker, 1})) < 0.05;
      times.push_back(absent ? kAbsent : speed * (0.5 + 0.1 / (1.02 - drawn)));
    }
  }
  return make_trace(workers, std::move(times));
}

// Decides as given, and keeps what it learns.
class FakePolicy : public Policy {
 public:
  explicit FakePolicy(std::function<Choice(const Situation&)> choose)
      : choose_(std::move(choose)) {}
  Choice decide(const Situation& situation) override { return choose_(situation); }
  std::optional<Choice> reconsider(const StepProgress& midway) override {
    return choose_again ? choose_again(midway) : std::nullopt;
  }
  void learn(const StepTimes& times) override { learned.push_back(times); }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    late.push_back({step, worker, seconds});
    learned_before.push_back(learned.size());
  }

  std::function<std::optional<Choice>(const StepProgress&)> choose_again;
  std::vector<StepTimes> learned;
  std::vector<LateArrival> late;
  std::vector<size_t> learned_before;  // steps learned before each late arrival

 private:
  std::function<Choice(const Situation&)> choose_;
};

std::unique_ptr<FakePolicy> fixed_cutoff(uint32_t cutoff) {
  return std::make_unique<FakePolicy>(
      [cutoff](const Situation&) { return Choice{.cutoff = cutoff, .reason = "fixed"}; });
}

// Each reading of the clock is one microsecond later.
std::function<TimePoint()> ticking_clock() {
  return [now = TimePoint{}]() mutable { return now += std::chrono::microseconds(1); };
}

struct Replayed {
  ReplayResult result;
  std::vector<StepClose> closes;
  std::vector<std::string> reasons;
  std::vector<bool> requested;  // by step and worker: Choice::probes
  std::vector<bool> late;       // by step and worker: its run-time became known late
};

Replayed run(const Trace& trace, std::unique_ptr<Policy> policy, const ReplaySettings& settings,
             const DecisionLimits& limits = {},
             std::optional<BalanceSettings> balance = std::nullopt) {
  Decider decider(std::move(policy), limits, balance);
  const size_t workers = trace.workers.size();
  Replayed replayed;
  replayed.requested.assign(trace.times.size(), false);
  replayed.late.assign(trace.times.size(), false);
  const auto result = replay(trace, oracle_of(trace, settings.overhead), decider, settings,
                             ticking_clock(), [&](const ReplayedStep& step) {
                               replayed.closes.push_back(step.close);
                               replayed.reasons.push_back(step.choice.reason);
                               for (const WorkerId worker : step.choice.probes)
                                 replayed.requested[step.step * workers + worker] = true;
                               for (const LateArrival& late : step.late)
                                 replayed.late[late.step * workers + late.worker] = true;
                               return done();
                             });
  EXPECT_TRUE(result.ok());
  replayed.result = result.value();
  return replayed;
}

TEST(OracleCloses, TakesTheCutoffWithTheMostGradientsPerTime) {
  const Trace trace = make_trace(4, {1, 2, 3, 10,  // 1, 1, 1, 0.4: on a tie, the most gradients
                                     10, 1, 1.1, 9, kAbsent, 5, kAbsent, 4});
  const OracleCloses oracle = oracle_of(trace, 0.0);
  EXPECT_EQ(oracle.best[0].contributors, 3u);
  EXPECT_EQ(oracle.best[1].contributors, 2u);
  EXPECT_EQ(oracle.best[1].elapsed, 1.1);
  EXPECT_EQ(oracle.best[2].contributors, 2u);
  EXPECT_EQ(oracle.all[0].elapsed, 10.0);
  EXPECT_EQ(oracle.all[2].contributors, 2u);
  EXPECT_EQ(oracle_of(trace, 100.0).best[1].contributors, 4u)
      << "with a large overhead, waiting costs little";
}

TEST(Replay, CountsAsDefined) {
  // Warm-up of one step; then two steps of 2 of 3 gradients.
  const Trace trace = make_trace(3, {9, 9, 9, 1, 2, 4,  // 1, 1, 0.75: best 2 in 2
                                     5, 4, 6,           // 0.25, 0.4, 0.5: best 3 in 6
                                     8, 1, 2});         // 1, 1, 0.375: best 2 in 2
  const ReplayResult result = run(trace, fixed_cutoff(2), {.warmup = 1}).result;
  EXPECT_EQ(result.steps, 4u);
  EXPECT_EQ(result.workers, 3u);
  EXPECT_EQ(result.measured_steps, 3u);
  EXPECT_DOUBLE_EQ(result.throughput_total, 6.0 / (2 + 5 + 2));
  EXPECT_DOUBLE_EQ(result.throughput_median, 1.0);
  EXPECT_DOUBLE_EQ(result.oracle_share_total, (6.0 / 9) / (7.0 / 10));
  EXPECT_DOUBLE_EQ(result.oracle_share_median, 1.0);
  EXPECT_DOUBLE_EQ(result.time_vs_sync, 9.0 / (4 + 6 + 8));
  EXPECT_DOUBLE_EQ(result.cutoff_mean, 2.0);
  EXPECT_DOUBLE_EQ(result.inclusion_min, 1.0 / 3.0) << "worker 2: only in the last";
  EXPECT_EQ(result.decision_p50, std::chrono::microseconds(2)) << "learning and deciding";
}

TEST(Replay, AddsTheOverheadToEveryStep) {
  const Trace trace = make_trace(2, {1, 3, 1, 5});
  const ReplayResult result = run(trace, fixed_cutoff(1), {.warmup = 0, .overhead = 1.0}).result;
  EXPECT_DOUBLE_EQ(result.throughput_total, 2.0 / 4.0);
  EXPECT_DOUBLE_EQ(result.time_vs_sync, 4.0 / 10.0);
}

TEST(Replay, TheMedianOfAnEvenNumberOfStepsIsTheMeanOfTheMiddleTwo) {
  const Trace trace = make_trace(2, {1, 1, 2, 2, 4, 4, 8, 8});
  EXPECT_DOUBLE_EQ(run(trace, fixed_cutoff(2), {.warmup = 0}).result.throughput_median, 0.75);
}

TEST(Replay, AWorkerThatWasNotRecordedTakesNoPart) {
  const Trace trace = make_trace(3, {1, kAbsent, 2, kAbsent, 1, 2, 1, 2, 3});
  std::vector<size_t> alive;
  auto policy = std::make_unique<FakePolicy>([&](const Situation& situation) {
    alive.push_back(situation.alive.size());
    return Choice{.cutoff = 99, .reason = "all"};
  });
  FakePolicy& fake = *policy;
  Decider decider(std::move(policy), {});
  const auto result =
      replay(trace, oracle_of(trace, 0.0), decider, {.warmup = 0}, ticking_clock(), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(alive, (std::vector<size_t>{2, 2, 3}));
  EXPECT_DOUBLE_EQ(result.value().inclusion_min, 1.0);
  EXPECT_DOUBLE_EQ(result.value().time_vs_sync, 1.0);
  ASSERT_EQ(fake.learned.size(), 3u);
  EXPECT_EQ(fake.learned[0].known[1], Known::kNothing);
  EXPECT_EQ(fake.learned[1].step, 1u);
}

TEST(Replay, OfEqualRunTimesOnlyTheCutoffIsUsed) {
  const Trace trace = make_trace(3, {1, 1, 1, 1, 1, 1});
  const ReplayResult result = run(trace, fixed_cutoff(2), {.warmup = 0}).result;
  EXPECT_DOUBLE_EQ(result.cutoff_mean, 2.0);
  EXPECT_DOUBLE_EQ(result.inclusion_min, 0.0) << "the first workers are used";
}

TEST(Replay, KeepsToTheLimits) {
  const Trace trace = make_trace(3, {1, 5, 9, 1, 5, 9});
  EXPECT_DOUBLE_EQ(run(trace, fixed_cutoff(1), {.warmup = 0}, {.at_least = 2}).result.cutoff_mean,
                   2.0);
  const Replayed waited = run(trace, fixed_cutoff(3), {.warmup = 0}, {.max_wait = 6.0});
  EXPECT_EQ(waited.closes[0].contributors, 2u);
  EXPECT_EQ(waited.closes[0].elapsed, 6.0);
}

TEST(Replay, EndsWithTheErrorOfItsListener) {
  const Trace trace = make_trace(2, {1, 2, 1, 2, 1, 2});
  Decider decider(fixed_cutoff(1), {});
  Step last = 0;
  const auto result = replay(trace, oracle_of(trace, 0.0), decider, {.warmup = 0}, ticking_clock(),
                             [&](const ReplayedStep& step) -> Status {
                               last = step.step;
                               return step.step == 1 ? Status(system_error("full")) : done();
                             });
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(last, 1u);
}

TEST(Replay, RefusesATraceThatIsAllWarmUp) {
  const Trace trace = make_trace(2, std::vector<double>(40, 1.0));
  EXPECT_TRUE(check_long_enough(trace, 19).ok());
  const Status status = check_long_enough(trace, 20);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("--policy-warmup 5"));
}

TEST(Foresight, HasTheRunTimesOfLiveWorkers) {
  const Trace trace = make_trace(3, {1, kAbsent, 2, 4, 5, 6});
  const Foresight foresight = foresight_of(trace);
  const std::vector<WorkerId> some = {0, 2};
  EXPECT_EQ(foresight(0, some), (std::vector<double>{1, 2}));
  EXPECT_EQ(foresight(1, some), (std::vector<double>{4, 6}));
}

// Replaces each run-time beyond the close of its step by another, larger one, except those that
// became known late. A requested probe that did not finish in time does not after the change.
Trace changed_beyond(const Trace& trace, const Replayed& replayed, uint64_t seed) {
  const std::vector<StepClose>& closes = replayed.closes;
  Trace changed = trace;
  const size_t workers = trace.workers.size();
  for (size_t i = 0; i < changed.times.size(); ++i) {
    const double elapsed = closes[i / workers].elapsed;
    if (!(changed.times[i] > elapsed) || replayed.late[i]) continue;
    changed.times[i] = elapsed * (1.0 + 1e-6 + 100.0 * unit_interval(draw({seed, i, 7}))) +
                       (replayed.requested[i] ? 1e6 : 0.0);
  }
  return changed;
}

// Replaces only run-times that the policy does not learn before the replay ends: those of workers
// that are no probes, and of probes that take longer.
Trace changed_beyond_probes(const Trace& trace, const Replayed& replayed,
                            const ReplaySettings& settings, uint64_t seed) {
  const size_t workers = trace.workers.size();
  const std::vector<StepClose>& closes = replayed.closes;
  std::vector<double> opened;
  double end = 0.0;
  for (Step step = 0; step < trace.steps(); ++step) {
    opened.push_back(end);
    end += settings.overhead + closes[step].elapsed;
  }
  Trace changed = trace;
  for (size_t i = 0; i < changed.times.size(); ++i) {
    if (!(changed.times[i] > closes[i / workers].elapsed) || replayed.late[i]) continue;
    // Longer than the rest of the replay, so that the policy does not learn it.
    changed.times[i] = end - opened[i / workers] + 1.0 + unit_interval(draw({seed, i, 8}));
  }
  return changed;
}

bool same_decisions(const Replayed& a, const Replayed& b) {
  const auto same = [](const StepClose& x, const StepClose& y) {
    return x.contributors == y.contributors && x.elapsed == y.elapsed;
  };
  return a.reasons == b.reasons &&
         std::equal(a.closes.begin(), a.closes.end(), b.closes.begin(), b.closes.end(), same);
}

std::unique_ptr<Policy> made(const std::string& name, const Trace& trace, Objective objective,
                             bool live = false) {
  auto policy = make_policy(name, {.objective = objective,
                                   .warmup = 5,
                                   .seed = 3,
                                   .live = live,
                                   .foresight = foresight_of(trace)});
  if (!policy) ADD_FAILURE() << name << ": " << policy.error().message;
  return std::move(policy).value();
}

// Invariant 1 of ARCHITECTURE.md, for all policies.
TEST(Replay, NoDecisionDependsOnAnUnobservedRunTime) {
  const ReplaySettings settings{.warmup = 5, .overhead = 0.1};
  size_t tried = 0;
  for (const PolicyInfo& info : policies()) {
    if (info.name == "oracle") continue;
    std::string name(info.name);
    if (name == "deadline") name = "deadline:1.2";
    for (const Objective objective : {Objective::kThroughput, Objective::kRate}) {
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(name + " " + std::to_string(seed));
        const Trace trace = random_trace(seed, 12, 60);
        if (!make_policy(name, {.foresight = foresight_of(trace)})) continue;  // async, ssp
        // Limits close steps early even for policies that wait.
        const DecisionLimits limits{.max_wait = seed == 1 ? 1.5 : kNoTimeLimit};
        const Replayed before = run(trace, made(name, trace, objective), settings, limits);
        const Trace changed = changed_beyond(trace, before, seed);
        const Replayed after = run(changed, made(name, changed, objective), settings, limits);
        EXPECT_TRUE(same_decisions(before, after));
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 6u);
}

TEST(Replay, NoDecisionDependsOnAProbeThatHasNotFinished) {
  size_t changes = 0;
  for (const PolicyInfo& info : policies()) {
    if (info.name == "oracle") continue;
    std::string name(info.name);
    if (name == "deadline") name = "deadline:1.2";
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(name + " " + std::to_string(seed));
      const ReplaySettings settings{.warmup = 5, .overhead = 0.1, .probe = 0.5, .seed = seed};
      const Trace trace = random_trace(seed, 12, 60);
      if (!make_policy(name, {.foresight = foresight_of(trace)})) continue;  // async, ssp
      const DecisionLimits limits{.max_wait = 1.2};
      const Replayed before =
          run(trace, made(name, trace, Objective::kThroughput), settings, limits);
      const Trace changed = changed_beyond_probes(trace, before, settings, seed);
      for (size_t i = 0; i < trace.times.size(); ++i) {
        changes += changed.times[i] > trace.times[i] ? 1 : 0;
      }
      const Replayed after =
          run(changed, made(name, changed, Objective::kThroughput), settings, limits);
      EXPECT_TRUE(same_decisions(before, after));
    }
  }
  EXPECT_GT(changes, 1000u);
}

TEST(Replay, APolicyLearnsOfAProbeWhenItHasFinished) {
  // Each step waits 1 s for one worker; the overhead is 0.5 s. In step 0 the other worker takes 3.2
  // s, until step 2.
  const Trace trace = make_trace(2, {1, 3.2, 1, 9, 1, 1.2, 1, 3, 1, 9});
  auto policy = fixed_cutoff(1);
  FakePolicy& fake = *policy;
  Decider decider(std::move(policy), {});
  const ReplaySettings settings{.warmup = 0, .overhead = 0.5, .probe = 1.0};
  std::vector<size_t> late;
  const auto result = replay(trace, oracle_of(trace, 0.5), decider, settings, ticking_clock(),
                             [&](const ReplayedStep& step) {
                               late.push_back(step.late.size());
                               return done();
                             });
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(fake.late.size(), 3u) << "the other probes take longer than the replay";
  EXPECT_EQ(fake.late[0].step, 0u);
  EXPECT_EQ(fake.late[0].worker, 1u);
  EXPECT_EQ(fake.late[0].run_time, 3.2);
  EXPECT_EQ(fake.learned_before, (std::vector<size_t>{3, 3, 5}))
      << "steps open at 0, 1.5, 3, 4.5, 6";
  EXPECT_EQ(fake.late[1].step, 2u) << "it began at 3 and took 1.2; the first probe ended at 3.2";
  EXPECT_EQ(late, (std::vector<size_t>{0, 0, 0, 2, 0})) << "learned before the decision";
}

TEST(Replay, WithoutProbesNoLateArrivalIsLearned) {
  const Trace trace = random_trace(3, 10, 50);
  auto policy = fixed_cutoff(3);
  FakePolicy& fake = *policy;
  Decider decider(std::move(policy), {});
  ASSERT_TRUE(
      replay(trace, oracle_of(trace, 0.0), decider, {.warmup = 0}, ticking_clock(), {}).ok());
  EXPECT_TRUE(fake.late.empty());
}

TEST(Replay, TheTestFindsAPolicyThatPeeks) {
  const Trace trace = random_trace(1, 12, 60);
  const auto peeking = [](const Trace& whole) {
    return std::make_unique<FakePolicy>([&whole](const Situation& situation) {
      const auto row = whole.row(situation.step);
      const auto fast = std::count_if(row.begin(), row.end(), [](double x) { return x < 1.5; });
      return Choice{.cutoff = static_cast<uint32_t>(std::max<int64_t>(fast / 2, 1)),
                    .reason = "peeks"};
    });
  };
  const Replayed before = run(trace, peeking(trace), {.warmup = 5});
  const Trace changed = changed_beyond(trace, before, 1);
  EXPECT_FALSE(same_decisions(before, run(changed, peeking(changed), {.warmup = 5})));
}

TEST(Replay, IsReproducible) {
  const Trace trace = random_trace(5, 10, 50);
  for (const PolicyInfo& info : policies()) {
    if (!make_policy(info.name, {.foresight = foresight_of(trace)})) continue;
    SCOPED_TRACE(info.name);
    const std::string name(info.name);
    const auto once = run(trace, made(name, trace, Objective::kThroughput), {.warmup = 5});
    const auto again = run(trace, made(name, trace, Objective::kThroughput), {.warmup = 5});
    EXPECT_TRUE(same_decisions(once, again));
  }
}

// --- Reviews within a step.

// Waits for all workers. Asks for a review when one worker has arrived, and then every `every`.
std::unique_ptr<FakePolicy> reviewing(double every) {
  auto policy = std::make_unique<FakePolicy>([](const Situation& situation) {
    return Choice{.cutoff = static_cast<uint32_t>(situation.alive.size()),
                  .reason = "waits",
                  .review = {.arrivals = 1}};
  });
  policy->choose_again = [every](const StepProgress& midway) {
    return Choice{.cutoff = static_cast<uint32_t>(midway.arrived.size()),
                  .reason = "waits on",
                  .review = {.at = midway.now + every}};
  };
  return policy;
}

TEST(Replay, AReviewSeesOnlyArrivedWorkers) {
  const Trace trace = make_trace(4, {1, 2.2, kAbsent, 3, 4, 2, 1.5, 2.25});
  auto policy = reviewing(1.0);
  std::vector<std::vector<double>> arrived;
  std::vector<double> times;
  std::vector<Step> steps;
  policy->choose_again = [&, next = policy->choose_again](const StepProgress& midway) {
    arrived.emplace_back(midway.arrived.begin(), midway.arrived.end());
    times.push_back(midway.now);
    steps.push_back(midway.step);
    return next(midway);
  };
  const Replayed replayed = run(trace, std::move(policy), {.warmup = 0});
  EXPECT_EQ(steps, (std::vector<Step>{0, 0, 1, 1, 1}));
  EXPECT_EQ(times, (std::vector<double>{1, 2, 1.5, 2.5, 3.5}))
      << "not at 3: the step closes by itself at that time";
  constexpr double kNot = HUGE_VAL;
  EXPECT_EQ(arrived[0], (std::vector<double>{1, kNot, kNot})) << "in the order of the live workers";
  EXPECT_EQ(arrived[1], (std::vector<double>{1, kNot, kNot}));
  EXPECT_EQ(arrived[2], (std::vector<double>{kNot, kNot, 1.5, kNot}));
  EXPECT_EQ(arrived[3], (std::vector<double>{kNot, 2, 1.5, 2.25}));
  EXPECT_EQ(replayed.closes[0].elapsed, 3.0);
  EXPECT_EQ(replayed.closes[1].elapsed, 4.0);
  EXPECT_EQ(replayed.reasons[0], "waits on") << "the last choice is the one that is recorded";
  EXPECT_DOUBLE_EQ(replayed.result.reviews_mean, 2.5);
}

TEST(Replay, AReviewCanCloseTheStep) {
  const Trace trace = make_trace(4, {1, 2, 3, 9, 1, 2, 3, 9});
  auto policy = reviewing(1.0);
  FakePolicy& fake = *policy;
  policy->choose_again = [](const StepProgress& midway) {
    const auto here = std::count_if(midway.arrived.begin(), midway.arrived.end(),
                                    [](double time) { return time < HUGE_VAL; });
    const bool enough = midway.now >= 2.4;
    return Choice{.cutoff = enough ? static_cast<uint32_t>(here) : 4,
                  .reason = enough ? "closes" : "waits on",
                  .review = {.at = midway.now + 0.5}};
  };
  Decider decider(std::move(policy), {});
  std::vector<StepClose> closes;
  const auto result =
      replay(trace, oracle_of(trace, 0.0), decider, {.warmup = 0}, ticking_clock(),
             [&](const ReplayedStep& step) {
               closes.push_back(step.close);
               EXPECT_EQ(step.choice.reason, "closes");
               EXPECT_EQ(step.included, (std::vector<bool>{true, true, false, false}));
               return done();
             });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(closes[0].contributors, 2u);
  EXPECT_EQ(closes[0].elapsed, 2.5) << "when it was decided, not when the last worker arrived";
  EXPECT_DOUBLE_EQ(result.value().throughput_total, 2.0 / 2.5);
  EXPECT_EQ(fake.learned[0].known[2], Known::kLonger);
  EXPECT_EQ(fake.learned[0].seconds[2], 2.5);
}

TEST(Replay, AReviewWithoutAChoiceIsTheLast) {
  const Trace trace = make_trace(3, {1, 2, 9, 1, 2, 9});
  auto policy = reviewing(0.1);
  size_t reviews = 0;
  policy->choose_again = [&](const StepProgress&) {
    ++reviews;
    return std::nullopt;
  };
  const Replayed replayed = run(trace, std::move(policy), {.warmup = 0});
  EXPECT_EQ(reviews, 2u) << "once in each step";
  EXPECT_EQ(replayed.closes[0].elapsed, 9.0);
  EXPECT_EQ(replayed.reasons[0], "waits");
}

TEST(ObservedPolicy, PassesOnReviews) {
  size_t learned = 0;
  const auto observed = std::make_unique<ObservedPolicy>(
      reviewing(1.0), [&learned](const StepTimes&) { ++learned; }, [](Step, WorkerId) {});
  EXPECT_EQ(observed->reconsider({0, 1.0, std::vector{1.0, HUGE_VAL}}).value().reason, "waits on");
  observed->learn({});
  EXPECT_EQ(learned, 1u);
}

TEST(Replay, CountsReviewsAfterTheWarmUp) {
  const Trace trace = make_trace(2, {1, 9.5, 1, 9.5, 1, 2.5, 1, 1});
  EXPECT_DOUBLE_EQ(run(trace, reviewing(1.0), {.warmup = 2}).result.reviews_mean, 1.0)
      << "two in one step, and none where both arrive at once";
}

// A policy that keeps all its decisions.
class RecordingPolicy : public Policy {
 public:
  struct Output {
    Step step = 0;
    double at = 0.0;
    std::string reason;
    bool operator==(const Output&) const = default;
  };
  RecordingPolicy(std::unique_ptr<Policy> policy, std::vector<Output>& outputs,
                  std::vector<std::vector<double>>& shares)
      : policy_(std::move(policy)), outputs_(outputs), shares_(shares) {}
  Choice decide(const Situation& situation) override {
    std::vector<double> shares(situation.alive.back() + size_t{1}, 1.0);
    for (size_t i = 0; i < situation.shares.size(); ++i)
      shares[situation.alive[i]] = situation.shares[i];
    shares_.push_back(shares);
    Choice choice = policy_->decide(situation);
    outputs_.push_back({situation.step, 0.0, choice.reason});
    return choice;
  }
  std::optional<Choice> reconsider(const StepProgress& midway) override {
    auto choice = policy_->reconsider(midway);
    outputs_.push_back({midway.step, midway.now, choice ? choice->reason : "nothing"});
    return choice;
  }
  void learn(const StepTimes& times) override { policy_->learn(times); }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    policy_->learn_late(step, worker, seconds);
  }

 private:
  const std::unique_ptr<Policy> policy_;
  std::vector<Output>& outputs_;
  std::vector<std::vector<double>>& shares_;
};

struct PolicyOutputs {
  std::vector<RecordingPolicy::Output> outputs;
  std::vector<std::vector<double>> shares;  // by step and worker
};

PolicyOutputs record_outputs(const Trace& trace, std::unique_ptr<Policy> policy,
                             const std::optional<BalanceSettings>& balance) {
  PolicyOutputs recorded;
  run(trace,
      std::make_unique<RecordingPolicy>(std::move(policy), recorded.outputs, recorded.shares),
      {.warmup = 5, .overhead = 0.1}, {}, balance);
  return recorded;
}

// Changes all run-times from this time of the step on.
Trace changed_after(const Trace& trace, const PolicyOutputs& recorded, Step step, double time,
                    uint64_t seed) {
  Trace changed = trace;
  const size_t workers = trace.workers.size();
  for (size_t i = step * workers; i < changed.times.size(); ++i) {
    const double drawn = unit_interval(draw({seed, i, 9}));
    if (i / workers > step) {
      changed.times[i] *= 0.5 + drawn;
      continue;
    }
    const size_t worker = i % workers;
    const double share =
        worker < recorded.shares[step].size() ? recorded.shares[step][worker] : 1.0;
    if (!(changed.times[i] * share > time)) continue;
    changed.times[i] = time / share * (1.0 + 1e-6 + 4.0 * drawn);
  }
  return changed;
}

using PolicyMaker = std::function<std::unique_ptr<Policy>(const Trace&)>;

// Whether some output of the policy up to a review depends on run-times after the review. Counts
// the reviews that were tried.
bool leaks_inside_a_step(const Trace& trace, const PolicyMaker& make,
                         const std::optional<BalanceSettings>& balance, size_t& tried) {
  const PolicyOutputs recorded = record_outputs(trace, make(trace), balance);
  size_t reviews = 0;
  for (size_t i = 0; i < recorded.outputs.size(); ++i) {
    const RecordingPolicy::Output& output = recorded.outputs[i];
    if (output.at == 0.0 || reviews++ % 13 != 0) continue;
    const Trace changed = changed_after(trace, recorded, output.step, output.at, i);
    const PolicyOutputs again = record_outputs(changed, make(changed), balance);
    ++tried;
    if (again.outputs.size() <= i) return true;
    const auto end = static_cast<std::ptrdiff_t>(i + 1);
    if (!std::equal(recorded.outputs.begin(), recorded.outputs.begin() + end,
                    again.outputs.begin()))
      return true;
  }
  return false;
}

TEST(Replay, NoReviewDependsOnLaterRunTimes) {
  size_t tried = 0;
  for (const std::string name : {"ecdf", "ecdf:hedge=on", "ewma", "elfving-online", "bayes"}) {
    for (const auto& balance :
         {std::optional<BalanceSettings>(), std::optional(BalanceSettings{.warmup = 5})}) {
      SCOPED_TRACE(name);
      const Trace trace = random_trace(4, 12, 30);
      const auto make = [&](const Trace& whole) {
        return made(name, whole, Objective::kThroughput, true);
      };
      EXPECT_FALSE(leaks_inside_a_step(trace, make, balance, tried));
    }
  }
  EXPECT_GT(tried, 20u);
}

TEST(Replay, TheTestFindsAReviewThatPeeks) {
  const Trace trace = random_trace(4, 12, 30);
  const auto peeking = [](const Trace& whole) {
    auto policy = reviewing(0.2);
    policy->choose_again = [&whole, next = policy->choose_again](const StepProgress& midway) {
      const auto row = whole.row(midway.step);
      auto choice = next(midway);
      choice->reason += " until " + std::to_string(row[0] + row[1]);
      return choice;
    };
    return policy;
  };
  size_t tried = 0;
  EXPECT_TRUE(leaks_inside_a_step(trace, peeking, std::nullopt, tried));
}

TEST(Replay, NoLiveDecisionDependsOnAnUnobservedRunTime) {
  const ReplaySettings settings{.warmup = 5, .overhead = 0.1};
  for (const PolicyInfo& info : policies()) {
    if (info.name == "oracle") continue;
    std::string name(info.name);
    if (name == "deadline") name = "deadline:1.2";
    const Trace trace = random_trace(2, 12, 40);
    // Policies without a forecast, and asynchronous ones, cannot be live.
    if (!make_policy(name, {.live = true, .foresight = foresight_of(trace)})) continue;
    SCOPED_TRACE(name);
    const DecisionLimits limits{.max_wait = 1.8};
    const Replayed before =
        run(trace, made(name, trace, Objective::kThroughput, true), settings, limits);
    const Trace changed = changed_beyond(trace, before, 1);
    const Replayed after =
        run(changed, made(name, changed, Objective::kThroughput, true), settings, limits);
    EXPECT_TRUE(same_decisions(before, after));
  }
}

TEST(Replay, LiveAndBalancedIsReproducible) {
  const Trace trace = random_trace(5, 10, 60);
  for (const PolicyInfo& info : policies()) {
    const std::string name(info.name);
    if (!make_policy(name, {.live = true, .foresight = foresight_of(trace)})) continue;
    SCOPED_TRACE(name);
    for (const auto& balance :
         {std::optional<BalanceSettings>(), std::optional(BalanceSettings{.warmup = 5})}) {
      const auto replayed = [&] {
        return run(trace, made(name, trace, Objective::kThroughput, true),
                   {.warmup = 5, .overhead = 0.1}, {}, balance);
      };
      const Replayed once = replayed();
      const Replayed again = replayed();
      EXPECT_TRUE(same_decisions(once, again));
      EXPECT_EQ(once.result.throughput_total, again.result.throughput_total);
      EXPECT_EQ(once.result.inclusion_min, again.result.inclusion_min);
      EXPECT_EQ(once.result.reviews_mean, again.result.reviews_mean);
    }
  }
}

TEST(Replay, LiveDoesNotWaitForANodeThatIsSlow) {
  // In every eighth step half of the workers take ten times as long.
  std::vector<double> times;
  for (Step step = 0; step < 200; ++step) {
    for (uint32_t worker = 0; worker < 16; ++worker) {
      const double typical = 1.0 + 0.1 * unit_interval(draw({step, worker}));
      times.push_back(step % 8 == 7 && worker < 8 ? 10.0 * typical : typical);
    }
  }
  const Trace trace = make_trace(16, times);
  const auto throughput = [&](bool live) {
    return run(trace, made("ecdf", trace, Objective::kThroughput, live), {.warmup = 20})
        .result.throughput_total;
  };
  EXPECT_GT(throughput(true), 1.2 * throughput(false));
}

// --- Balanced mini-batches.

// One of eight workers is always twice as slow.
Trace one_slow(Step steps) {
  std::vector<double> times;
  for (Step step = 0; step < steps; ++step) {
    for (uint32_t worker = 0; worker < 8; ++worker) times.push_back(worker == 3 ? 2.0 : 1.0);
  }
  return make_trace(8, times);
}

TEST(Replay, BalanceBeatsTheBestCutoffWithEqualMiniBatches) {
  // Without the slow worker: 7 gradients in 1 s. With 16 / 15 of the batch for each fast worker and
  // half of that for the slow one: 8 gradients in 16 / 15 s, which is 7.5 gradients/s.
  const Trace trace = one_slow(200);
  const BalanceSettings balance{.warmup = 20};
  const ReplayResult cut = run(trace, fixed_cutoff(7), {.warmup = 30}).result;
  EXPECT_DOUBLE_EQ(cut.throughput_total, 7.0);
  EXPECT_DOUBLE_EQ(cut.oracle_share_total, 1.0);
  EXPECT_EQ(cut.inclusion_min, 0.0);
  for (const std::string name : {"sync", "ecdf"}) {
    SCOPED_TRACE(name);
    const ReplayResult balanced =
        run(trace, made(name, trace, Objective::kThroughput), {.warmup = 30}, {}, balance).result;
    EXPECT_GT(balanced.throughput_total, 1.02 * cut.throughput_total);
    EXPECT_LE(balanced.throughput_total, 7.5 + 1e-6) << "at most the possible throughput";
    EXPECT_GT(balanced.oracle_share_total, 1.02) << "relative to the oracle with equal batches";
    if (name == "sync") {
      EXPECT_DOUBLE_EQ(balanced.inclusion_min, 1.0);
      EXPECT_LT(balanced.time_vs_sync, 0.6);
    }
  }
}

TEST(Replay, AStepCountsTheSharesOfThoseUsed) {
  const Trace trace = random_trace(6, 9, 60);
  Decider decider(fixed_cutoff(6), {}, BalanceSettings{.warmup = 10});
  double gradients = 0.0;
  double time = 0.0;
  const ReplaySettings settings{.warmup = 15, .overhead = 0.3};
  const auto result =
      replay(trace, oracle_of(trace, 0.3), decider, settings, ticking_clock(),
             [&](const ReplayedStep& step) {
               EXPECT_EQ(std::count(step.included.begin(), step.included.end(), true),
                         step.close.contributors);
               for (WorkerId worker = 0; worker < 9; ++worker) {
                 const double share = decider.share(step.step, worker);
                 if (step.seen.known[worker] == Known::kArrived) {
                   EXPECT_DOUBLE_EQ(step.seen.seconds[worker], share * trace.row(step.step)[worker])
                       << "a share of the work takes that share of the time";
                 }
                 if (step.step >= 15 && step.included[worker]) gradients += share;
               }
               if (step.step >= 15) time += 0.3 + step.close.elapsed;
               return done();
             });
  ASSERT_TRUE(result.ok());
  EXPECT_NEAR(result.value().throughput_total, gradients / time, 1e-9);
  EXPECT_DOUBLE_EQ(result.value().cutoff_mean, 6.0) << "counts workers, whatever their shares";
}

// --- Without reviews and balance.

TEST(Replay, GivesTheResultsCalculatedByHand) {
  // Run-times 1, 1.5 and 8 s: the best close is two workers in 1.5 s. In the last step worker 0 is
  // late.
  std::vector<double> times;
  for (Step step = 0; step < 9; ++step) times.insert(times.end(), {1.0, 1.5, 8.0});
  times.insert(times.end(), {2.0, 1.5, 8.0});
  const Trace trace = make_trace(3, times);
  const auto result_of = [&](const std::string& name) {
    return run(trace, made(name, trace, Objective::kThroughput), {.warmup = 6}).result;
  };
  const ReplayResult sync = result_of("sync");
  EXPECT_DOUBLE_EQ(sync.throughput_total, 12.0 / 32.0);
  EXPECT_DOUBLE_EQ(sync.time_vs_sync, 1.0);
  EXPECT_DOUBLE_EQ(sync.inclusion_min, 1.0);
  EXPECT_DOUBLE_EQ(sync.oracle_share_total, (12.0 / 32.0) / (8.0 / 6.5));
  const ReplayResult fixed = result_of("static:k=2");
  EXPECT_DOUBLE_EQ(fixed.throughput_total, 8.0 / 6.5);
  EXPECT_DOUBLE_EQ(fixed.throughput_median, 2.0 / 1.5);
  EXPECT_DOUBLE_EQ(fixed.time_vs_sync, 6.5 / 32.0);
  EXPECT_DOUBLE_EQ(fixed.oracle_share_total, 1.0);
  EXPECT_DOUBLE_EQ(fixed.inclusion_min, 0.0);
  const ReplayResult ecdf = result_of("ecdf");
  EXPECT_DOUBLE_EQ(ecdf.throughput_total, fixed.throughput_total);
  EXPECT_DOUBLE_EQ(ecdf.cutoff_mean, 2.0);
  EXPECT_DOUBLE_EQ(ecdf.time_vs_sync, fixed.time_vs_sync);
  for (const ReplayResult& each : {sync, fixed, ecdf}) {
    EXPECT_EQ(each.reviews_mean, 0.0);
    EXPECT_LE(each.oracle_share_total, 1.0);
  }
}

// Half of the workers are 3 x slower for 60 steps, then 1.3 x: worth waiting for, but not visible
// unless dropped workers finish now and then.
TEST(Replay, BayesTakesRecoveredWorkersBackWithinTenSteps) {
  constexpr uint32_t kWorkers = 8;
  constexpr Step kSlowUntil = 60;
  std::vector<double> times;
  for (Step step = 0; step < 90; ++step) {
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      const double slow = worker % 2 == 1 ? 1.0 : step < kSlowUntil ? 3.0 : 1.3;
      times.push_back(slow * (1.0 + 0.02 * unit_interval(draw({7, step, worker}))));
    }
  }
  const Trace trace = make_trace(kWorkers, times);
  const Replayed replayed = run(trace, made("bayes", trace, Objective::kThroughput), {.warmup = 5});
  EXPECT_EQ(replayed.closes[kSlowUntil - 1].contributors, kWorkers / 2);
  for (Step step = kSlowUntil + 10; step < 90; ++step)
    EXPECT_EQ(replayed.closes[step].contributors, kWorkers) << "step " << step;
}

}  // namespace
}  // namespace drover

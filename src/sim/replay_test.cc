#include "sim/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/chance.h"
#include "core/numbers.h"

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
      const double chance = unit_interval(draw({seed, step, worker}));
      const double speed = 1.0 + unit_interval(draw({seed, worker}));
      const bool absent = worker > 1 && unit_interval(draw({seed, step, worker, 1})) < 0.05;
      times.push_back(absent ? kAbsent : speed * (0.5 + 0.1 / (1.02 - chance)));
    }
  }
  return make_trace(workers, std::move(times));
}

// Says what it is told to say; remembers what it is told.
class FakePolicy : public Policy {
 public:
  explicit FakePolicy(std::function<Choice(const Situation&)> choose)
      : choose_(std::move(choose)) {}
  Choice decide(const Situation& situation) override { return choose_(situation); }
  void learn(const StepTimes& times) override { told.push_back(times); }
  void learn_late(Step step, WorkerId worker, double seconds) override {
    late.push_back({step, worker, seconds});
    told_before.push_back(told.size());
  }

  std::vector<StepTimes> told;
  std::vector<LateArrival> late;
  std::vector<size_t> told_before;  // steps that were told before each of these

 private:
  std::function<Choice(const Situation&)> choose_;
};

std::unique_ptr<FakePolicy> fixed_cutoff(uint32_t cutoff) {
  return std::make_unique<FakePolicy>(
      [cutoff](const Situation&) { return Choice{.cutoff = cutoff, .reason = "fixed"}; });
}

// Every look at it is a microsecond later.
std::function<TimePoint()> ticking_clock() {
  return [now = TimePoint{}]() mutable { return now += std::chrono::microseconds(1); };
}

struct Replayed {
  ReplayResult result;
  std::vector<StepClose> closes;
  std::vector<std::string> reasons;
};

Replayed run(const Trace& trace, std::unique_ptr<Policy> policy, const ReplaySettings& settings,
             const DecisionLimits& limits = {}) {
  Decider decider(std::move(policy), limits);
  Replayed replayed;
  const auto result = replay(trace, hindsight_of(trace, settings.overhead), decider, settings,
                             ticking_clock(), [&](const ReplayedStep& step) {
                               replayed.closes.push_back(step.close);
                               replayed.reasons.push_back(step.choice.reason);
                               return done();
                             });
  EXPECT_TRUE(result.ok());
  replayed.result = result.value();
  return replayed;
}

TEST(Hindsight, TakesTheCutoffWithTheMostGradientsPerTime) {
  const Trace trace =
      make_trace(4, {1, 2, 3, 10,    // 1, 1, 1, 0.4: of equal ones, the most gradients
                     10, 1, 1.1, 9,  //
                     kAbsent, 5, kAbsent, 4});
  const Hindsight hindsight = hindsight_of(trace, 0.0);
  EXPECT_EQ(hindsight.best[0].contributors, 3u);
  EXPECT_EQ(hindsight.best[1].contributors, 2u);
  EXPECT_EQ(hindsight.best[1].elapsed, 1.1);
  EXPECT_EQ(hindsight.best[2].contributors, 2u);
  EXPECT_EQ(hindsight.all[0].elapsed, 10.0);
  EXPECT_EQ(hindsight.all[2].contributors, 2u);
  EXPECT_EQ(hindsight_of(trace, 100.0).best[1].contributors, 4u)
      << "with a large overhead, waiting costs little";
}

TEST(Replay, CountsAsDefined) {
  // Warm-up of one step; then two steps of 2 of 3 gradients.
  const Trace trace = make_trace(3, {9, 9, 9,    //
                                     1, 2, 4,    // 1, 1, 0.75: best 2 in 2
                                     5, 4, 6,    // 0.25, 0.4, 0.5: best 3 in 6
                                     8, 1, 2});  // 1, 1, 0.375: best 2 in 2
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

TEST(Replay, OfAnEvenNumberOfStepsTheMedianLiesInTheMiddle) {
  const Trace trace = make_trace(2, {1, 1, 2, 2, 4, 4, 8, 8});
  EXPECT_DOUBLE_EQ(run(trace, fixed_cutoff(2), {.warmup = 0}).result.throughput_median, 0.75);
}

TEST(Replay, WhoeverWasNotRecordedIsNotWaitedForAndNotMissed) {
  const Trace trace = make_trace(3, {1, kAbsent, 2, kAbsent, 1, 2, 1, 2, 3});
  std::vector<size_t> alive;
  auto policy = std::make_unique<FakePolicy>([&](const Situation& situation) {
    alive.push_back(situation.alive.size());
    return Choice{.cutoff = 99, .reason = "everybody"};
  });
  FakePolicy& told = *policy;
  Decider decider(std::move(policy), {});
  const auto result =
      replay(trace, hindsight_of(trace, 0.0), decider, {.warmup = 0}, ticking_clock(), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(alive, (std::vector<size_t>{2, 2, 3}));
  EXPECT_DOUBLE_EQ(result.value().inclusion_min, 1.0);
  EXPECT_DOUBLE_EQ(result.value().time_vs_sync, 1.0);
  ASSERT_EQ(told.told.size(), 3u);
  EXPECT_EQ(told.told[0].known[1], Known::kNothing);
  EXPECT_EQ(told.told[1].step, 1u);
}

TEST(Replay, OfEqualRunTimesAsManyAreUsedAsWereWanted) {
  const Trace trace = make_trace(3, {1, 1, 1, 1, 1, 1});
  const ReplayResult result = run(trace, fixed_cutoff(2), {.warmup = 0}).result;
  EXPECT_DOUBLE_EQ(result.cutoff_mean, 2.0);
  EXPECT_DOUBLE_EQ(result.inclusion_min, 0.0) << "in the order of workers";
}

TEST(Replay, KeepsToTheLimits) {
  const Trace trace = make_trace(3, {1, 5, 9, 1, 5, 9});
  EXPECT_DOUBLE_EQ(run(trace, fixed_cutoff(1), {.warmup = 0}, {.at_least = 2}).result.cutoff_mean,
                   2.0);
  const Replayed waited = run(trace, fixed_cutoff(3), {.warmup = 0}, {.max_wait = 6.0});
  EXPECT_EQ(waited.closes[0].contributors, 2u);
  EXPECT_EQ(waited.closes[0].elapsed, 6.0);
}

TEST(Replay, EndsWithTheErrorOfWhoeverListens) {
  const Trace trace = make_trace(2, {1, 2, 1, 2, 1, 2});
  Decider decider(fixed_cutoff(1), {});
  Step last = 0;
  const auto result = replay(trace, hindsight_of(trace, 0.0), decider, {.warmup = 0},
                             ticking_clock(), [&](const ReplayedStep& step) -> Status {
                               last = step.step;
                               return step.step == 1 ? Status(system_error("full")) : done();
                             });
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(last, 1u);
}

TEST(Replay, ThatIsAllWarmUpIsRefused) {
  const Trace trace = make_trace(2, std::vector<double>(40, 1.0));
  EXPECT_TRUE(check_long_enough(trace, 19).ok());
  const Status status = check_long_enough(trace, 20);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("--warmup 5"));
}

TEST(Foresight, TellsTheRunTimesOfWhoeverIsAlive) {
  const Trace trace = make_trace(3, {1, kAbsent, 2, 4, 5, 6});
  const Foresight foresight = foresight_of(trace);
  const std::vector<WorkerId> some = {0, 2};
  EXPECT_EQ(foresight(0, some), (std::vector<double>{1, 2}));
  EXPECT_EQ(foresight(1, some), (std::vector<double>{4, 6}));
}

// Every run-time beyond the close of its step becomes another, larger one.
Trace changed_beyond(const Trace& trace, const std::vector<StepClose>& closes, uint64_t seed) {
  Trace changed = trace;
  const size_t workers = trace.workers.size();
  for (size_t i = 0; i < changed.times.size(); ++i) {
    const double elapsed = closes[i / workers].elapsed;
    if (!(changed.times[i] > elapsed)) continue;
    changed.times[i] = elapsed * (1.0 + 1e-6 + 100.0 * unit_interval(draw({seed, i, 7})));
  }
  return changed;
}

// The same where it is not heard of before the replay ends: who was no probe, and probes that go on
// for longer.
Trace changed_beyond_probes(const Trace& trace, const std::vector<StepClose>& closes,
                            const ReplaySettings& settings, uint64_t seed) {
  const size_t workers = trace.workers.size();
  Probes probes(settings.probe, settings.seed);
  std::vector<double> opened;
  double end = 0.0;
  for (Step step = 0; step < trace.steps(); ++step) {
    probes.step_closed(step, end, trace.row(step), closes[step]);
    opened.push_back(end);
    end += settings.overhead + closes[step].elapsed;
  }
  std::vector<bool> heard(trace.times.size(), false);
  for (const LateArrival& each : probes.finished_by(1e300)) {
    heard[each.step * workers + each.worker] = opened[each.step] + each.run_time <= end;
  }
  Trace changed = trace;
  for (size_t i = 0; i < changed.times.size(); ++i) {
    if (!(changed.times[i] > closes[i / workers].elapsed) || heard[i]) continue;
    // Longer than the rest of the replay, so that it stays unheard of.
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

std::unique_ptr<Policy> made(const std::string& name, const Trace& trace, Objective objective) {
  auto policy = make_policy(
      name, {.objective = objective, .warmup = 5, .seed = 3, .foresight = foresight_of(trace)});
  if (!policy) ADD_FAILURE() << name << ": " << policy.error().message;
  return std::move(policy).value();
}

// Invariant 1 of ARCHITECTURE.md, over every policy there is.
TEST(Replay, NoDecisionDependsOnARunTimeThatWasNotSeen) {
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
        const Trace changed = changed_beyond(trace, before.closes, seed);
        const Replayed after = run(changed, made(name, changed, objective), settings, limits);
        EXPECT_TRUE(same_decisions(before, after));
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 6u);
}

TEST(Replay, NorDoesItWithProbesThatHaveNotFinished) {
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
      const Trace changed = changed_beyond_probes(trace, before.closes, settings, seed);
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

TEST(Replay, TellsOfAProbeWhenItHasFinishedAndNotBefore) {
  // Every step waits for one, 1 s; the overhead is 0.5. The other takes 1 + 2.2: two steps on.
  const Trace trace = make_trace(2, {1, 3.2, 1, 9, 1, 1.2, 1, 3, 1, 9});
  auto policy = fixed_cutoff(1);
  FakePolicy& told = *policy;
  Decider decider(std::move(policy), {});
  const ReplaySettings settings{.warmup = 0, .overhead = 0.5, .probe = 1.0};
  std::vector<size_t> late;
  const auto result = replay(trace, hindsight_of(trace, 0.5), decider, settings, ticking_clock(),
                             [&](const ReplayedStep& step) {
                               late.push_back(step.late.size());
                               return done();
                             });
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(told.late.size(), 3u) << "the others take longer than the replay";
  EXPECT_EQ(told.late[0].step, 0u);
  EXPECT_EQ(told.late[0].worker, 1u);
  EXPECT_EQ(told.late[0].run_time, 3.2);
  EXPECT_EQ(told.told_before, (std::vector<size_t>{3, 3, 5})) << "steps open at 0, 1.5, 3, 4.5, 6";
  EXPECT_EQ(told.late[1].step, 2u) << "it began at 3 and took 1.2; the first ended at 3.2";
  EXPECT_EQ(late, (std::vector<size_t>{0, 0, 0, 2, 0})) << "told before it was decided";
}

TEST(Replay, WithoutProbesNobodyIsToldOfLate) {
  const Trace trace = random_trace(3, 10, 50);
  auto policy = fixed_cutoff(3);
  FakePolicy& told = *policy;
  Decider decider(std::move(policy), {});
  ASSERT_TRUE(
      replay(trace, hindsight_of(trace, 0.0), decider, {.warmup = 0}, ticking_clock(), {}).ok());
  EXPECT_TRUE(told.late.empty());
}

TEST(Replay, AndThatIsNoticed) {
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
  const Trace changed = changed_beyond(trace, before.closes, 1);
  EXPECT_FALSE(same_decisions(before, run(changed, peeking(changed), {.warmup = 5})));
}

TEST(Replay, RepeatsExactly) {
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

}  // namespace
}  // namespace drover

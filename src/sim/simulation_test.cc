// A simulated run trains like a live run: it gives the parameters of plain SGD, takes the time that
// the scenario's run-times determine, and is reproducible.
#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/event_text.h"
#include "policy/catalogue.h"
#include "sim/pull_task.h"

namespace drover {
namespace {

// Keeps all records.
class Record : public RunObserver {
 public:
  Status on_peer(const PeerRecord& peer) override { return keep(name_of(peer.peer), peer.host); }
  Status on_decision(const DecisionRecord& decision) override {
    decisions.push_back(decision);
    return keep(decision.step, decision.cutoff, decision.alive, decision.reason);
  }
  Status on_step(const StepRecord& step, const std::vector<ArrivalRecord>& all) override {
    steps.push_back(step);
    arrivals.push_back(all);
    for (const ArrivalRecord& each : all)
      (void)keep(each.worker, each.run_time.count(), each.censored, each.compute.count());
    return keep(step.step, step.at.count(), step.elapsed.count(), step.contributors, step.late,
                step.samples, step.loss, step.last_worker);
  }
  Status on_late_arrival(const ArrivalRecord& late) override {
    late_arrivals.push_back(late);
    return keep("late", late.step, late.worker, late.run_time.count());
  }
  Status on_abandoned(const AbandonRecord& abandoned) override {
    abandons.push_back(abandoned);
    return keep("abandoned", abandoned.step, abandoned.worker, abandoned.wasted.count());
  }
  Status on_evaluation(const EvaluationRecord& evaluation) override {
    evaluations.push_back(evaluation);
    return keep(evaluation.version, evaluation.at.count(), evaluation.loss);
  }
  Status on_event(const EventRecord& event) override {
    events.push_back(event);
    return keep(event.at.count(), event_line(event));
  }
  Status on_end(const RunEnd& run_end) override {
    end = run_end;
    return keep(run_end.reason, run_end.elapsed.count(), run_end.parameters_digest);
  }

  std::vector<DecisionRecord> decisions;
  std::vector<StepRecord> steps;
  std::vector<std::vector<ArrivalRecord>> arrivals;
  std::vector<ArrivalRecord> late_arrivals;
  std::vector<AbandonRecord> abandons;
  std::vector<EvaluationRecord> evaluations;
  std::vector<EventRecord> events;
  RunEnd end;
  std::ostringstream text;

 private:
  template <typename... Parts>
  Status keep(const Parts&... parts) {
    ((text << parts << ' '), ...);
    text << '\n';
    return done();
  }
};

std::unique_ptr<Policy> synchronous() { return std::move(make_policy("sync", {})).value(); }

SimulationSettings small_run(uint32_t workers, Step steps) {
  SimulationSettings settings;
  settings.coordinator.workers = workers;
  settings.coordinator.workers_at_start = workers;
  settings.coordinator.shards = 2;
  settings.coordinator.steps = steps;
  settings.coordinator.evaluator = true;
  settings.coordinator.learning.schedule.base = 0.1;
  settings.coordinator.learning.optimizer.kind = OptimizerKind::kSgd;
  settings.scenario.links.push_back({{}, {.latency = Duration::zero()}});
  return settings;
}

Record run(const SimulationSettings& settings, const std::string& policy, bool live = false) {
  PullTask task;
  Record record;
  const auto make = [&]() -> std::unique_ptr<Policy> {
    if (settings.coordinator.asynchronous) return nullptr;
    auto made = make_policy(policy, {.warmup = 3, .live = live});
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  };
  Simulation simulation(settings, make, task, {&record}, nullptr);
  const auto end = simulation.run([] { return true; });
  EXPECT_TRUE(end.ok()) << end.error().message;
  return record;
}

RunTimeRule rule(WorkerId worker, double time) {
  return {{.workers = {{worker, worker}}}, {.mean = time}};
}

// Plain SGD on one machine, with the mean of all workers' gradients.
double plain_sgd(uint32_t workers, Step steps) {
  double value = 0.0;
  for (Step step = 0; step < steps; ++step) {
    double gradient = 0.0;
    for (WorkerId worker = 0; worker < workers; ++worker)
      gradient += value - PullTask::target({.first = step * workers + worker, .count = 1});
    value -= 0.1 * gradient / workers;
  }
  return value;
}

TEST(Simulation, GivesTheParametersOfPlainSgd) {
  const Record record = run(small_run(4, 30), "sync");
  ASSERT_EQ(record.end.outcome, RunOutcome::kCompleted) << record.end.reason;
  ASSERT_EQ(record.evaluations.size(), 1u);
  const double value = plain_sgd(4, 30);
  EXPECT_NEAR(record.evaluations[0].loss, 0.5 * value * value, 1e-6);
}

TEST(Simulation, AStepTakesAsLongAsItsSlowestWorker) {
  SimulationSettings settings = small_run(3, 5);
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 2.5), rule(2, 1.5)};
  const Record record = run(settings, "sync");
  ASSERT_EQ(record.steps.size(), 5u);
  for (const StepRecord& step : record.steps) {
    EXPECT_NEAR(seconds(step.elapsed), 2.5, 1e-6);
    EXPECT_EQ(step.contributors, 3u);
    EXPECT_EQ(step.last_worker, 1u);
  }
  EXPECT_NEAR(seconds(record.end.elapsed), 12.5, 1e-5);
}

TEST(Simulation, ACutoffEndsTheStepWithTheGradientThatReachesIt) {
  SimulationSettings settings = small_run(3, 6);
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 50.0), rule(2, 1.5)};
  const Record record = run(settings, "static:k=2");
  ASSERT_EQ(record.steps.size(), 6u);
  // The first decision reaches shards whose step is open and whose workers compute; it still
  // applies.
  for (size_t step = 0; step < 6; ++step) {
    EXPECT_EQ(record.steps[step].contributors, 2u);
    const ArrivalRecord& slow = record.arrivals[step][1];
    EXPECT_TRUE(slow.censored);
    EXPECT_NEAR(seconds(slow.run_time), seconds(record.steps[step].elapsed), 1e-6);
  }
  EXPECT_NEAR(seconds(record.steps[3].elapsed), 1.5, 1e-6);
}

TEST(Simulation, ATimeLimitEndsTheStepWithoutAnyMessage) {
  SimulationSettings settings = small_run(3, 6);
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 50.0), rule(2, 1.5)};
  const Record record = run(settings, "deadline:2.25");
  for (const StepRecord& step : record.steps) {
    EXPECT_EQ(step.contributors, 2u);
    EXPECT_NEAR(seconds(step.elapsed), 2.25, 1e-6);
  }
}

TEST(Simulation, AStoppedStragglerStartsOnTheNextStepAfterALayer) {
  SimulationSettings settings = small_run(2, 4);
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 9.0)};
  // In step 2 the slow worker is fast: it can only contribute if it abandoned its earlier work.
  settings.scenario.slow.push_back(
      {.selector = {.workers = {{1, 1}}}, .steps = {2, 3}, .factor = 0.01});
  settings.scenario.slow.push_back({.selector = {}, .steps = {2, 3}, .factor = 2.0});
  const Record record = run(settings, "static:k=1");
  ASSERT_EQ(record.steps.size(), 4u);
  // One of six layers (three tensors, forwards and backwards) of 9 s takes 1.5 s. The worker is
  // stopped at 1 s, and begins step 2, which opened at 2 s, at 2.5 s.
  EXPECT_FALSE(record.arrivals[2][1].censored);
  EXPECT_NEAR(seconds(record.arrivals[2][1].run_time), 0.68, 1e-3);
}

TEST(Simulation, RecordsTheTimeLostByStops) {
  SimulationSettings settings = small_run(2, 20);
  settings.scenario.links = {{{}, {.latency = from_seconds(0.05)}}};
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 3.0)};
  const Record record = run(settings, "static:k=1");
  ASSERT_GE(record.abandons.size(), 8u);
  for (const AbandonRecord& each : record.abandons) {
    EXPECT_EQ(each.worker, 1u);
    EXPECT_GT(each.resumed, each.step);
    // The stop takes 0.05 s, and one layer of six 0.5 s. Then the worker pulls the parameters,
    // which takes 0.05 s there and back, and reports, which takes as long.
    EXPECT_NEAR(seconds(each.restart), 0.7, 0.11);
    EXPECT_GT(seconds(each.wasted), 0.5);
    EXPECT_LT(seconds(each.wasted), 3.0);
    EXPECT_TRUE(record.arrivals[each.step][1].censored);
  }
}

TEST(Simulation, RunTimesOfStragglersThatFinishAreRecorded) {
  SimulationSettings settings = small_run(2, 20);
  settings.coordinator.stragglers = StragglerRule::kFinish;
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 3.5)};
  const Record record = run(settings, "static:k=1");
  EXPECT_TRUE(record.abandons.empty());
  ASSERT_GE(record.late_arrivals.size(), 4u);
  for (const ArrivalRecord& late : record.late_arrivals) {
    EXPECT_EQ(late.worker, 1u);
    EXPECT_GE(seconds(late.run_time), 3.5 - 1e-6);
    EXPECT_NEAR(seconds(late.compute), 3.5, 1e-6);
    EXPECT_EQ(late.samples, 1u);
  }
  EXPECT_NEAR(seconds(record.late_arrivals[0].run_time), 3.5, 1e-6);
  EXPECT_EQ(record.end.outcome, RunOutcome::kCompleted);
}

TEST(Simulation, RunTimesOfProbesAreRecordedAndOtherStragglersAreStopped) {
  SimulationSettings settings = small_run(3, 300);
  settings.coordinator.probe = 0.1;
  settings.coordinator.seed = 4;
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 3.5), rule(2, 2.5)};
  const Record record = run(settings, "static:k=1");
  EXPECT_GT(record.abandons.size(), 100u);
  EXPECT_GT(record.late_arrivals.size(), 10u);
  EXPECT_LT(record.late_arrivals.size(), 120u);
  bool different = false;
  settings.coordinator.seed = 5;
  different = run(settings, "static:k=1").text.str() != record.text.str();
  EXPECT_TRUE(different) << "another seed draws other probes";
}

TEST(Simulation, AWorkerWithMoreLayersNoticesAStopSooner) {
  SimulationSettings settings = small_run(2, 4);
  settings.scenario.layers = 45;  // of 0.1 s
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 9.0)};
  settings.scenario.slow.push_back(
      {.selector = {.workers = {{1, 1}}}, .steps = {1, 2}, .factor = 0.01});
  const Record record = run(settings, "static:k=1");
  EXPECT_FALSE(record.arrivals[1][1].censored);
  EXPECT_NEAR(seconds(record.arrivals[1][1].run_time), 0.19, 1e-3);
}

// Shards open a step at different times, since the gradients of the last layers come first. The
// recorded run-times must be those of the workers nevertheless.
TEST(Simulation, RecordsTheRunTimesOfTheScenario) {
  SimulationSettings settings = small_run(5, 30);
  settings.coordinator.shards = 3;
  settings.scenario.run_times.push_back(
      {{}, {.kind = RunTimeKind::kLognormal, .mean = 1.0, .deviation = 0.6}});
  RunTimes truth(settings.scenario, 5, settings.seed);
  const Record record = run(settings, "sync");
  ASSERT_EQ(record.arrivals.size(), 30u);
  for (const auto& arrivals : record.arrivals) {
    for (const ArrivalRecord& arrival : arrivals) {
      EXPECT_NEAR(seconds(arrival.run_time), truth.seconds(arrival.step, arrival.worker), 1e-6)
          << "worker " << arrival.worker << " in step " << arrival.step;
    }
  }
}

TEST(Simulation, IsReproducible) {
  SimulationSettings settings = small_run(6, 25);
  settings.seed = 5;
  settings.scenario.nodes = {3, 3};
  settings.scenario.run_times.push_back(
      {{}, {.kind = RunTimeKind::kLognormal, .mean = 1.0, .deviation = 0.4}});
  settings.scenario.links = {
      {{}, {.latency = from_seconds(0.01), .jitter = from_seconds(0.01), .loss = 0.05}}};
  settings.scenario.deaths.push_back({.worker = 2, .when = {.step = 7}});
  settings.scenario.joins.push_back({.worker = 2, .when = {.step = 15}});
  const std::string first = run(settings, "ecdf").text.str();
  EXPECT_EQ(first, run(settings, "ecdf").text.str());
  settings.seed = 6;
  EXPECT_NE(first, run(settings, "ecdf").text.str());
}

SimulationSettings uneven_run() {
  SimulationSettings settings = small_run(4, 60);
  settings.batch = settings.coordinator.batch = 40;
  settings.coordinator.full_samples = 160;
  settings.coordinator.balance = BalanceSettings{.warmup = 5};
  settings.scenario.run_times.push_back(
      {{}, {.kind = RunTimeKind::kLognormal, .mean = 1.0, .deviation = 0.05}});
  settings.scenario.slow.push_back({.selector = {.workers = {{3, 3}}}, .factor = 3.0});
  return settings;
}

TEST(Simulation, BalanceLetsASlowWorkerFinishWithTheOthers) {
  const Record record = run(uneven_run(), "sync");
  ASSERT_EQ(record.steps.size(), 60u);
  for (Step step = 30; step < 60; ++step) {
    uint64_t samples = 0;
    for (const ArrivalRecord& each : record.arrivals[step]) samples += each.samples;
    EXPECT_EQ(samples, 160u) << "all samples, step " << step;
    EXPECT_EQ(record.steps[step].samples, 160u);
    EXPECT_NEAR(record.arrivals[step][3].samples, 16, 4) << "a third of the others' samples";
    EXPECT_LT(seconds(record.steps[step].elapsed), 1.6) << "less than three";
  }
}

TEST(Simulation, RevisesADecisionWithinAStep) {
  SimulationSettings settings = small_run(8, 60);
  settings.scenario.run_times.push_back(
      {{}, {.kind = RunTimeKind::kLognormal, .mean = 1.0, .deviation = 0.05}});
  // Half of the workers become ten times slower from one step to the next.
  settings.scenario.slow.push_back(
      {.selector = {.workers = {{4, 7}}}, .steps = {.first = 40, .end = 41}, .factor = 10.0});
  const Record once = run(settings, "ecdf");
  EXPECT_GT(seconds(once.steps[40].elapsed), 9.0);
  const Record live = run(settings, "ecdf", true);
  EXPECT_LT(seconds(live.steps[40].elapsed), 5.0);
  const auto again = std::find_if(
      live.decisions.begin(), live.decisions.end(),
      [](const DecisionRecord& each) { return each.step == 40 && each.at > Duration::zero(); });
  ASSERT_NE(again, live.decisions.end());
  EXPECT_NE(again->reason.find("new plan"), std::string::npos) << again->reason;
}

TEST(Simulation, LiveAndBalancedIsReproducible) {
  SimulationSettings settings = uneven_run();
  settings.scenario.deaths.push_back({.worker = 2, .when = {.step = 20}});
  settings.scenario.joins.push_back({.worker = 2, .when = {.step = 40}});
  EXPECT_EQ(run(settings, "ecdf", true).text.str(), run(settings, "ecdf", true).text.str());
}

TEST(Simulation, ContinuesWithoutLostWorkersAndWithNewOnes) {
  SimulationSettings settings = small_run(4, 12);
  settings.coordinator.workers_at_start = 3;
  settings.scenario.deaths.push_back({.worker = 1, .when = {.step = 4}});
  settings.scenario.joins.push_back({.worker = 3, .when = {.step = 6}});
  settings.scenario.joins.push_back({.worker = 1, .when = {.step = 8}});
  const Record record = run(settings, "sync");
  ASSERT_EQ(record.end.outcome, RunOutcome::kCompleted) << record.end.reason;
  EXPECT_EQ(record.steps[3].contributors, 3u);
  EXPECT_EQ(record.steps[5].contributors, 2u);
  EXPECT_EQ(record.steps[7].contributors, 3u);
  EXPECT_EQ(record.steps[11].contributors, 4u);
}

TEST(Simulation, AFixedCountDoesNotHangWhenThePoolShrinks) {
  SimulationSettings settings = small_run(64, 6);
  for (WorkerId worker = 0; worker < 27; ++worker)
    settings.scenario.deaths.push_back({.worker = worker, .when = {.step = 2}});
  const Record record = run(settings, "static:k=60");
  ASSERT_EQ(record.end.outcome, RunOutcome::kCompleted) << record.end.reason;
  EXPECT_EQ(record.steps[1].contributors, 60u);
  EXPECT_EQ(record.steps[5].contributors, 37u);
  EXPECT_EQ(record.decisions[5].cutoff, 37u);
}

TEST(Simulation, EndsWhenAllWorkersAreLost) {
  SimulationSettings settings = small_run(2, 10);
  settings.scenario.deaths = {{.worker = 0, .when = {.step = 3}},
                              {.worker = 1, .when = {.step = 3}}};
  const Record record = run(settings, "sync");
  EXPECT_EQ(record.end.outcome, RunOutcome::kFailed);
  EXPECT_EQ(record.end.cause, EndCause::kWorkersLost);
}

TEST(Simulation, APartitionDelaysTheWorkersBehindIt) {
  SimulationSettings settings = small_run(2, 4);
  settings.scenario.nodes = {1, 1};
  settings.scenario.partitions.push_back(
      {.selector = {.node = 1}, .when = {.step = 1}, .length = from_seconds(9.0)});
  const Record record = run(settings, "sync");
  EXPECT_NEAR(seconds(record.steps[0].elapsed), 1.0, 1e-6);
  EXPECT_GT(seconds(record.steps[1].elapsed), 8.9);
  EXPECT_NEAR(seconds(record.steps[3].elapsed), 1.0, 1e-6);
}

TEST(Simulation, ASlowShardDelaysTheStepsItSends) {
  SimulationSettings settings = small_run(2, 4);
  settings.scenario.slow_shards.push_back({.shard = 1, .share = 1.0, .delay = from_seconds(4.0)});
  const Record record = run(settings, "sync");
  EXPECT_NEAR(seconds(record.steps[2].elapsed), 5.0, 1e-6);
}

TEST(Simulation, AsynchronousWorkersDoNotWaitForEachOther) {
  SimulationSettings settings = small_run(4, 20);
  settings.coordinator.asynchronous = Asynchronous{};
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 1.0), rule(2, 1.0), rule(3, 100.0)};
  const Record record = run(settings, "async");
  ASSERT_EQ(record.end.outcome, RunOutcome::kCompleted) << record.end.reason;
  // 80 gradients of three workers, with one gradient per second each.
  EXPECT_NEAR(seconds(record.end.elapsed), 80.0 / 3.0, 2.0);
}

TEST(Simulation, StaleSynchronousWorkersKeepWithinTheirBound) {
  SimulationSettings settings = small_run(4, 20);
  settings.coordinator.asynchronous = Asynchronous{.staleness = 2};
  settings.scenario.run_times = {rule(0, 1.0), rule(1, 1.0), rule(2, 1.0), rule(3, 4.0)};
  const Record record = run(settings, "ssp");
  ASSERT_EQ(record.end.outcome, RunOutcome::kCompleted) << record.end.reason;
  // The slow worker makes a gradient every 4 s, and so, in the long run, do all others.
  EXPECT_NEAR(seconds(record.end.elapsed), 20 * 4.0, 12.0);
}

// The loss is 0.5 v^2, and v moves from 0 towards the mean of all targets, so the loss grows. The
// targets of these tests are therefore an accuracy that this task never reaches, and a loss that it
// has from the first evaluation on.
TEST(Simulation, EndsWithTheEvaluationThatReachesItsTarget) {
  SimulationSettings settings = small_run(3, 50);
  settings.coordinator.evaluate_every = 5;
  settings.coordinator.stop_at = Target{TargetKind::kLoss, 100.0};
  const Record reached = run(settings, "sync");
  EXPECT_EQ(reached.end.outcome, RunOutcome::kCompleted) << reached.end.reason;
  ASSERT_EQ(reached.evaluations.size(), 1u);
  EXPECT_EQ(reached.evaluations[0].version, 5u);
  EXPECT_GE(reached.steps.size(), 5u);
  EXPECT_LT(reached.steps.size(), 10u);
  ASSERT_FALSE(reached.events.empty());
  EXPECT_EQ(reached.events.front().kind(), EventKind::kReached);

  settings.coordinator.stop_at = Target{TargetKind::kAccuracy, 0.5};
  const Record never = run(settings, "sync");
  EXPECT_EQ(never.end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(never.steps.size(), 50u) << "a target that is not reached has no effect";
  EXPECT_EQ(never.evaluations.size(), 10u);
}

TEST(Simulation, EndsAsynchronousRunsAtTheirTarget) {
  SimulationSettings settings = small_run(3, 50);
  settings.coordinator.asynchronous = Asynchronous{};
  settings.coordinator.evaluate_every = 5;
  settings.coordinator.stop_at = Target{TargetKind::kLoss, 100.0};
  const Record record = run(settings, "");
  EXPECT_EQ(record.end.outcome, RunOutcome::kCompleted) << record.end.reason;
  ASSERT_EQ(record.evaluations.size(), 1u);
}

class FullDisk : public Record {
 public:
  Status on_end(const RunEnd&) override { return system_error("the disk is full"); }
};

TEST(Simulation, ARunThatCannotBeRecordedFails) {
  PullTask task;
  FullDisk disk;
  Simulation simulation(small_run(2, 3), synchronous, task, {&disk}, nullptr);
  const auto end = simulation.run([] { return true; });
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end.value().outcome, RunOutcome::kFailed);
  EXPECT_EQ(end.value().cause, EndCause::kRecordFailed);
  EXPECT_EQ(end.value().reason, "the disk is full");
}

TEST(Simulation, CanBeInterrupted) {
  PullTask task;
  Record record;
  Simulation simulation(small_run(2, 100'000), synchronous, task, {&record}, nullptr);
  int pulses = 0;
  const auto end = simulation.run([&] { return ++pulses < 3; });
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end.value().outcome, RunOutcome::kInterrupted);
}

// --- partial pull: workers continue without some blocks

SimulationSettings partial_pull_run(double share, Step steps = 20) {
  SimulationSettings settings = small_run(4, steps);
  settings.coordinator.shards = 3;
  settings.coordinator.pull.share = share;
  settings.coordinator.evaluator = false;
  settings.scenario.run_times = {{{}, {.mean = 1.0}}};
  settings.scenario.links = {{{}, {.latency = std::chrono::milliseconds(1)}}};
  return settings;
}

TEST(PartialPullSimulation, WithAGraceAndNoSlowShardItIsTheSameRun) {
  SimulationSettings settings = partial_pull_run(0.3);
  settings.coordinator.pull.grace = std::chrono::milliseconds(100);
  const Record partial = run(settings, "sync");
  const Record all = run(partial_pull_run(1.0), "sync");
  ASSERT_EQ(partial.steps.size(), 20u);
  EXPECT_EQ(partial.end.parameters_digest, all.end.parameters_digest);
  EXPECT_EQ(partial.end.elapsed, all.end.elapsed);
  for (const StepRecord& step : partial.steps) {
    EXPECT_EQ(step.fresh_min, 1.0);
    EXPECT_EQ(step.staleness_max, 0u);
  }
  EXPECT_TRUE(std::isnan(all.steps[3].fresh_mean)) << "not reported if all blocks are waited for";
}

TEST(PartialPullSimulation, SlowAnswersDoNotDelayWorkersThatDoNotWaitForThem) {
  SimulationSettings settings = partial_pull_run(1.0);
  settings.scenario.slow_shards = {{.shard = 1, .share = 0.3, .delay = std::chrono::seconds(4)}};
  const Record all = run(settings, "sync");
  settings.coordinator.pull.share = 0.3;
  settings.coordinator.pull.grace = std::chrono::milliseconds(20);
  const Record partial = run(settings, "sync");
  ASSERT_EQ(partial.end.outcome, RunOutcome::kCompleted) << partial.end.reason;
  EXPECT_GT(seconds(all.end.elapsed), 60.0);
  EXPECT_LT(seconds(partial.end.elapsed), 25.0) << "1 s per step, and the first pull waits for all";
  double least = 1.0;
  uint64_t behind = 0;
  for (const StepRecord& step : partial.steps) {
    least = std::min(least, step.fresh_min);
    behind = std::max(behind, step.staleness_max);
  }
  EXPECT_LT(least, 1.0);
  EXPECT_GE(behind, 1u);
}

// The other shards continue, the shard that hangs catches up, all steps are recorded, and no state
// accumulates meanwhile.
TEST(PartialPullSimulation, AShardThatHangsCatchesUp) {
  for (const char* policy : {"sync", "static:k=3"}) {
    SCOPED_TRACE(policy);
    SimulationSettings settings = partial_pull_run(0.3, 40);
    settings.coordinator.pull.grace = std::chrono::milliseconds(20);
    settings.scenario.stalls = {{.shard = 1,
                                 .when = {.at = std::chrono::milliseconds(5'500)},
                                 .length = std::chrono::seconds(12)}};
    const Record partial = run(settings, policy);
    ASSERT_EQ(partial.end.outcome, RunOutcome::kCompleted) << partial.end.reason;
    ASSERT_EQ(partial.steps.size(), 40u);
    EXPECT_LT(seconds(partial.end.elapsed), 43.0);
    uint64_t behind = 0;
    for (const StepRecord& step : partial.steps) behind = std::max(behind, step.staleness_max);
    EXPECT_GE(behind, 10u);
    // It has caught up. (A worker that a step did not wait for may begin the next step one block
    // too early.)
    EXPECT_LE(partial.steps.back().staleness_max, policy == std::string("sync") ? 0u : 1u);
    EXPECT_FALSE(std::isnan(partial.steps[10].loss)) << "blocks of other shards were updated";
    EXPECT_EQ(partial.steps[10].block_counts.front().contributors, 0u);
    settings.coordinator.pull.share = 1.0;
    EXPECT_GT(seconds(run(settings, policy).end.elapsed), 50.0);
  }
}

// Workers do not continue without a shard for ever: they wait for it when it is too far behind.
TEST(PartialPullSimulation, AShardThatHangsForLongIsWaitedFor) {
  SimulationSettings settings = partial_pull_run(0.3, 120);
  settings.scenario.stalls = {{.shard = 1,
                               .when = {.at = std::chrono::milliseconds(5'500)},
                               .length = std::chrono::seconds(100)}};
  const Record partial = run(settings, "sync");
  ASSERT_EQ(partial.end.outcome, RunOutcome::kCompleted) << partial.end.reason;
  ASSERT_EQ(partial.steps.size(), 120u);
  uint64_t behind = 0;
  for (const StepRecord& step : partial.steps) behind = std::max(behind, step.staleness_max);
  EXPECT_GT(behind, 30u);
  EXPECT_LT(behind, 60u);
}

TEST(PartialPullSimulation, TheShareIsChosenAndTheChoiceRecorded) {
  SimulationSettings settings = partial_pull_run(1.0, 40);
  settings.coordinator.pull = {.choose = true, .warmup = 8, .grace = std::chrono::milliseconds(20)};
  const Record calm = run(settings, "sync");
  EXPECT_TRUE(std::none_of(calm.events.begin(), calm.events.end(), [](const EventRecord& event) {
    return event.kind() == EventKind::kPullShare;
  }));
  settings.scenario.slow_shards = {{.shard = 1, .delay = std::chrono::seconds(3)}};
  const Record slow = run(settings, "sync");
  const auto chosen =
      std::find_if(slow.events.begin(), slow.events.end(),
                   [](const EventRecord& event) { return event.kind() == EventKind::kPullShare; });
  ASSERT_NE(chosen, slow.events.end());
  EXPECT_GE(chosen->step, 8u);
  EXPECT_EQ(chosen->as<event::PullShare>()->shards_left_out, 1u);
  EXPECT_EQ(chosen->as<event::PullShare>()->shards, 3u);
  EXPECT_LT(seconds(slow.end.elapsed), 40 + 9 * 3 + 10.0) << "slow only in the warm-up";
}

// --- runs that restart

// All steps of a deterministic run without faults, and its final parameters.
SimulationSettings recovering_run() {
  SimulationSettings settings = small_run(3, 6);
  settings.coordinator.learning.deterministic = true;
  settings.coordinator.recovers = true;
  settings.coordinator.incarnation = 1;
  settings.coordinator.checkpoint_every = 2;
  settings.coordinator.checkpoint_dir = "checkpoints";
  return settings;
}

bool restarted(const Record& record) {
  return std::any_of(record.events.begin(), record.events.end(), [](const EventRecord& event) {
    return event.kind() == EventKind::kRestarted;
  });
}

TEST(Simulation, ARunThatLosesAShardEndsWithTheSameParametersAsOneThatDoesNot) {
  const Record undisturbed = run(recovering_run(), "sync");
  SimulationSettings settings = recovering_run();
  settings.scenario.server_deaths.push_back(
      {.role = Role::kShard, .index = 1, .when = {.step = 3}});
  const Record disturbed = run(settings, "sync");
  EXPECT_TRUE(restarted(disturbed));
  EXPECT_EQ(disturbed.end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(disturbed.end.parameters_digest, undisturbed.end.parameters_digest);
  // From the checkpoint of step 2 on.
  std::vector<Step> steps;
  for (const StepRecord& step : disturbed.steps) steps.push_back(step.step);
  EXPECT_EQ(steps, (std::vector<Step>{0, 1, 2, 2, 3, 4, 5}));
}

TEST(Simulation, WithAStandbyALostShardCostsNoStep) {
  SimulationSettings settings = recovering_run();
  settings.coordinator.checkpoint_every = 0;
  settings.coordinator.standby = true;
  const Record undisturbed = run(settings, "sync");
  settings.scenario.server_deaths.push_back(
      {.role = Role::kShard, .index = 1, .when = {.step = 3}});
  const Record disturbed = run(settings, "sync");
  EXPECT_TRUE(restarted(disturbed));
  EXPECT_EQ(disturbed.end.parameters_digest, undisturbed.end.parameters_digest);
  EXPECT_EQ(disturbed.steps.size(), 6u);
}

TEST(Simulation, AKilledCoordinatorIsReplaced) {
  const Record undisturbed = run(recovering_run(), "sync");
  SimulationSettings settings = recovering_run();
  settings.scenario.server_deaths.push_back(
      {.role = Role::kCoordinator, .index = 0, .when = {.step = 5}});
  const Record disturbed = run(settings, "sync");
  EXPECT_EQ(disturbed.end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(disturbed.end.parameters_digest, undisturbed.end.parameters_digest);
  EXPECT_EQ(disturbed.steps.size(), 5u + 2u) << "steps 4 and 5 are repeated after the restart";
}

TEST(Simulation, ARunWithoutRecoveryFailsWithAShard) {
  SimulationSettings settings = small_run(2, 6);
  settings.scenario.server_deaths.push_back(
      {.role = Role::kShard, .index = 0, .when = {.step = 1}});
  const Record record = run(settings, "sync");
  EXPECT_EQ(record.end.outcome, RunOutcome::kFailed);
  EXPECT_FALSE(restarted(record));
}

TEST(Simulation, ScriptsBringTheirModelAndItsLearningRate) {
  SimulationSettings settings = small_run(2, 4);
  settings.coordinator.workers_bring_model = true;
  settings.coordinator.evaluator = false;
  settings.scripts = {.first_rate = 0.1, .rate = 0.02, .changes_at = 2, .pulls_ahead = true};
  const Record record = run(settings, "sync");
  EXPECT_EQ(record.end.outcome, RunOutcome::kCompleted);
  std::vector<double> rates;
  for (const StepRecord& step : record.steps) rates.push_back(step.learning_rate);
  EXPECT_EQ(rates, (std::vector<double>{0.1, 0.1, 0.02, 0.02}));
}

TEST(Simulation, ScriptsMayLeaveAndTheLastOneEndsTheRun) {
  SimulationSettings settings = small_run(2, 100);
  settings.coordinator.workers_bring_model = true;
  settings.coordinator.evaluator = false;
  settings.scripts = SimulatedScripts{};
  settings.scenario.leaves = {{.worker = 0, .before = 2}, {.worker = 1, .before = 4}};
  const Record record = run(settings, "sync");
  EXPECT_EQ(record.end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(record.steps.size(), 4u);
  EXPECT_EQ(record.steps.back().contributors, 1u);
}

TEST(Simulation, AFailingDiskKeepsNoCheckpoint) {
  SimulationSettings settings = recovering_run();
  settings.scenario.disk.failures = 1.0;
  settings.scenario.server_deaths.push_back(
      {.role = Role::kShard, .index = 0, .when = {.step = 5}});
  const Record record = run(settings, "sync");
  EXPECT_EQ(record.end.outcome, RunOutcome::kCompleted);
  EXPECT_EQ(record.steps.size(), 5u + 6u) << "the run restarted from the beginning";
}

}  // namespace
}  // namespace drover

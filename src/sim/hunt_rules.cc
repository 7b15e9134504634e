#include "sim/hunt_rules.h"

#include <algorithm>

#include "core/block_share.h"
#include "sim/pull_task.h"

namespace drover {
namespace {

// What a server may remember of the steps gone by, in all and of each worker (how late it was and
// that it was told to stop, of 64 steps, and what is under way).
constexpr size_t kKeptInAll = 72;
constexpr size_t kKeptOfEach = 140;
// What a shard remembers of each worker: of 64 steps, that it has not delivered.
constexpr size_t kShardKeptOfEach = 68;
// Where shards may be behind: news of those ahead, and what was pushed for steps to come.
constexpr size_t kKeptAhead = 64;
// Beyond the slowest run-times: detours, resends and partitions of a schedule made here.
constexpr Duration kDetours = std::chrono::seconds(60);
// A run restarts because something was lost, and now and then once more: what comes back while it
// restarts may be lost again.
constexpr uint32_t kRestartsPerFault = 3;
// Restarts in a row, in which members join again.
constexpr Duration kRestartMost = std::chrono::seconds(300);

uint32_t faults_in(const Scenario& scenario) {
  return static_cast<uint32_t>(scenario.deaths.size() + scenario.server_deaths.size() +
                               scenario.repeated_closings.size() + scenario.leaves.size());
}

bool times_are_exact(const Scenario& scenario) {
  return std::all_of(scenario.links.begin(), scenario.links.end(), [](const LinkRule& rule) {
    return rule.law.jitter == Duration::zero() && rule.law.loss == 0.0 &&
           rule.law.reordering == 0.0 && rule.law.bytes_per_second == 0.0;
  });
}

Duration slowest(const HuntCase& hunt) {
  RunTimes times(hunt.settings.scenario, hunt.settings.coordinator.workers, hunt.settings.seed);
  double most = 0.0;
  // Workers that need not wait for each other may get ahead of the run's own steps.
  const Step steps = hunt.settings.coordinator.steps * hunt.settings.coordinator.workers;
  for (Step step = 0; step < steps; ++step) {
    for (WorkerId worker = 0; worker < hunt.settings.coordinator.workers; ++worker)
      most = std::max(most, times.seconds(step, worker));
  }
  return from_seconds(most);
}

// All gradients and parameters of one step, through the end of one shard; several steps of them
// where a shard may be behind.
Duration slowest_transfer(const HuntCase& hunt) {
  double least = 0.0;  // bytes a second; 0: no limit
  for (const LinkRule& rule : hunt.settings.scenario.links) {
    if (rule.law.bytes_per_second > 0.0) least = rule.law.bytes_per_second;
  }
  if (least == 0.0) return {};
  constexpr double kStepsBehind = 4.0;
  const CoordinatorSettings& job = hunt.settings.coordinator;
  const auto floats = static_cast<double>(PullTask(true).layout().parameter_count());
  const double step = 2.0 * job.workers * floats * sizeof(float) / least;
  return from_seconds(job.pull.is_partial() ? kStepsBehind * step : step);
}

double momentum_of(const OptimizerSettings& optimizer) {
  return optimizer.kind == OptimizerKind::kMomentum ? optimizer.momentum : 0.0;
}

// What a worker's gradient is multiplied with.
double factor_of(const HuntCase& hunt, Step step, WorkerId worker) {
  double factor = 1.0;
  for (const Lie& each : hunt.settings.scenario.lies) {
    if (each.worker == worker && step >= each.step.value_or(0)) factor *= each.factor;
  }
  return factor;
}

GuardBook::Settings rules_for_guard(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  GuardBook::Settings guard{.rule = job.learning.guard, .workers = job.workers};
  for (const Lie& each : hunt.settings.scenario.lies) guard.liars.insert(each.worker);
  return guard;
}

ShareBook::Settings rules_for_shares(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  if (!job.balance) return {};
  return {.batch = job.batch,
          .least = job.balance->least,
          .most = job.balance->most,
          .seconds = hunt.steady_speeds,
          .warmup = job.balance->warmup};
}

CheckpointBook::Settings rules_for_checkpoints(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  const Scenario& scenario = hunt.settings.scenario;
  return {.steps = job.steps,
          .every = job.checkpoint_every,
          .writes_fail = scenario.disk.failures > 0.0,
          .recovers = job.recovers,
          .restarts_most = kRestartsPerFault * (1 + faults_in(scenario))};
}

}  // namespace

bool is_interrupted(const HuntCase& hunt) {
  const Scenario& scenario = hunt.settings.scenario;
  return !scenario.server_deaths.empty() || !scenario.repeated_closings.empty();
}

bool is_calm(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  const Scenario& scenario = hunt.settings.scenario;
  return job.learning.deterministic && hunt.policy == "sync" &&
         job.limits.max_wait == kNoTimeLimit && scenario.deaths.empty() && scenario.joins.empty() &&
         scenario.leaves.empty() && !job.balance &&
         (!is_interrupted(hunt) ||
          (scenario.partitions.empty() && !scenario.slow_coordinator && job.recovers));
}

RefereeSettings rules_for(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  const auto target_of = [](uint64_t first, uint32_t count) {
    return PullTask::target({.first = first, .count = count});
  };
  const auto target = [&hunt](Step step, WorkerId worker) {
    const uint32_t batch = hunt.settings.batch_of(worker);
    return PullTask::target(
        {.first = (step * hunt.settings.coordinator.workers + worker) * batch, .count = batch});
  };
  // Of a share that changes nothing is foretold.
  std::optional<uint32_t> needed;
  const Layout layout = PullTask(hunt.settings.scripts.has_value()).layout();
  const auto blocks = static_cast<uint32_t>(
      plan_blocks(layout, job.shards, block_floats_for(layout, job.shards)).blocks.size());
  if (job.pull.is_partial()) needed = job.pull.choose ? 0 : blocks_needed(job.pull.share, blocks);
  std::function<double(Step)> rate_at;
  if (hunt.settings.scripts) {
    rate_at = [&hunt](Step step) { return hunt.settings.scripts->rate_at(step); };
  }
  // Members that come back, and what is under way to those that have gone.
  const size_t restarts = job.recovers ? 200 : 0;
  const size_t ahead = needed ? kKeptAhead * (job.shards + 1) + size_t{blocks} * job.workers : 0;
  return {.steps = job.steps,
          .learning_rate = HuntCase::kLearningRate,
          .rate_at = rate_at,
          .momentum = momentum_of(job.learning.optimizer),
          .asynchronous = job.asynchronous.has_value(),
          .staleness = job.asynchronous.value_or(Asynchronous{}).staleness,
          .stragglers = {.all_finish = job.stragglers == StragglerRule::kFinish,
                         .probe = job.probe,
                         .probe_seed = job.seed,
                         .learned_early = needed.has_value()},
          .target = target,
          .target_of = job.balance ? std::function<double(uint64_t, uint32_t)>(target_of) : nullptr,
          .lie = [&hunt](Step step, WorkerId worker) { return factor_of(hunt, step, worker); },
          .guard = rules_for_guard(hunt),
          .shares = rules_for_shares(hunt),
          .checkpoints = rules_for_checkpoints(hunt),
          .recovers = job.recovers,
          .servers_die = is_interrupted(hunt),
          .scripts = hunt.settings.scripts.has_value(),
          .may_leave = !hunt.settings.scenario.leaves.empty(),
          .blocks_needed = needed,
          .push_grace = job.push_grace,
          // The news of a step that waits for a standby is that much later.
          .exact_times = !needed && !job.standby && times_are_exact(hunt.settings.scenario),
          .limits = {.step = 4 * slowest(hunt) + slowest_transfer(hunt) + kDetours +
                             (job.recovers ? kRestartMost : Duration()),
                     .events = 100 + restarts + 100 * size_t{job.workers} * job.shards,
                     .kept = kKeptInAll + kKeptOfEach * size_t{job.workers} + ahead,
                     .shard_kept = kKeptInAll + kShardKeptOfEach * size_t{job.workers} + ahead}};
}

}  // namespace drover

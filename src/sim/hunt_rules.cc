#include "sim/hunt_rules.h"

#include <algorithm>

#include "core/block_share.h"
#include "sim/pull_task.h"

namespace drover {
namespace {

// Upper bounds on the entries that a server keeps of past steps: in all, and of each worker (how
// late it was and that it was stopped, for 64 steps, and messages under way).
constexpr size_t kKeptInAll = 72;
constexpr size_t kKeptOfEach = 140;
// Upper bound on the entries that a shard keeps of each worker: missing gradients of 64 steps.
constexpr size_t kShardKeptOfEach = 68;
// The same where shards may be behind: reports of the shards ahead, and gradients of later steps.
constexpr size_t kKeptAhead = 64;
// Time for retries, resends and partitions, in addition to the slowest run-times.
constexpr Duration kDetours = std::chrono::seconds(60);
// A process that is restarted while the run restarts may be lost again. So one fault may cause more
// than one restart of the run.
constexpr uint32_t kRestartsPerFault = 3;
// Time for consecutive restarts, in which members join again.
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
  // Asynchronous workers may get ahead of the run's own steps.
  const Step steps = hunt.settings.coordinator.steps * hunt.settings.coordinator.workers;
  for (Step step = 0; step < steps; ++step) {
    for (WorkerId worker = 0; worker < hunt.settings.coordinator.workers; ++worker)
      most = std::max(most, times.seconds(step, worker));
  }
  return from_seconds(most);
}

// The time to transfer all gradients and parameters of one step over the link of one shard. Where a
// shard may be behind: of several steps.
Duration slowest_transfer(const HuntCase& hunt) {
  double least = 0.0;  // bytes/s; 0: no limit
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

// The factor of a worker's gradient.
double factor_of(const HuntCase& hunt, Step step, WorkerId worker) {
  double factor = 1.0;
  for (const ByzantineFault& each : hunt.settings.scenario.byzantine_faults) {
    if (each.worker == worker && step >= each.step.value_or(0)) factor *= each.factor;
  }
  return factor;
}

GuardChecker::Settings rules_for_guard(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  GuardChecker::Settings guard{.rule = job.learning.guard, .workers = job.workers};
  for (const ByzantineFault& each : hunt.settings.scenario.byzantine_faults)
    guard.byzantine_workers.insert(each.worker);
  return guard;
}

ShareChecker::Settings rules_for_shares(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  if (!job.balance) return {};
  return {.batch = job.batch,
          .least = job.balance->least,
          .most = job.balance->most,
          .seconds = hunt.steady_speeds,
          .warmup = job.balance->warmup};
}

CheckpointChecker::Settings rules_for_checkpoints(const HuntCase& hunt) {
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

bool is_order_independent(const HuntCase& hunt) {
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
  // Nothing is predicted if the share of blocks changes during the run.
  std::optional<uint32_t> needed;
  const Layout layout = PullTask(hunt.settings.scripts.has_value()).layout();
  const auto blocks = static_cast<uint32_t>(
      plan_blocks(layout, job.shards, block_floats_for(layout, job.shards)).blocks.size());
  if (job.pull.is_partial()) needed = job.pull.choose ? 0 : blocks_needed(job.pull.share, blocks);
  std::function<double(Step)> rate_at;
  if (hunt.settings.scripts) {
    rate_at = [&hunt](Step step) { return hunt.settings.scripts->rate_at(step); };
  }
  // Members that join again, and messages under way to members that have stopped.
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
          .gradient_factor = [&hunt](Step step,
                                     WorkerId worker) { return factor_of(hunt, step, worker); },
          .guard = rules_for_guard(hunt),
          .shares = rules_for_shares(hunt),
          .checkpoints = rules_for_checkpoints(hunt),
          .recovers = job.recovers,
          .servers_die = is_interrupted(hunt),
          .scripts = hunt.settings.scripts.has_value(),
          .may_leave = !hunt.settings.scenario.leaves.empty(),
          .blocks_needed = needed,
          .push_grace = job.push_grace,
          // The report of a step that waits for a standby is delayed by that wait.
          .exact_times = !needed && !job.standby && times_are_exact(hunt.settings.scenario),
          .limits = {.step = 4 * slowest(hunt) + slowest_transfer(hunt) + kDetours +
                             (job.recovers ? kRestartMost : Duration()),
                     .events = 100 + restarts + 100 * size_t{job.workers} * job.shards,
                     .kept = kKeptInAll + kKeptOfEach * size_t{job.workers} + ahead,
                     .shard_kept = kKeptInAll + kShardKeptOfEach * size_t{job.workers} + ahead}};
}

}  // namespace drover

#include "sim/hunt_faults.h"

#include "core/peer.h"

namespace drover {
namespace {

ServerDeath some_server_death(HuntDraft& draft) {
  const CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  ServerDeath death{.role = Role::kShard,
                    .index = random.number(0, job.shards - 1),
                    .when = draft.some_trigger(),
                    .back = random.time(0.01, 3.0),
                    .loses_messages = random.bernoulli(0.5)};
  const double which = random.uniform();
  if (job.standby && which < 0.3) {
    death.role = Role::kStandby;
  } else if (job.recovers && which < 0.6) {
    death.role = job.evaluator && random.bernoulli(0.2) ? Role::kEvaluator : Role::kCoordinator;
    death.index = 0;
  }
  return death;
}

}  // namespace

void draw_worker_faults(HuntDraft& draft) {
  RandomDraws& random = draft.random;
  for (uint32_t count = random.number(0, 3); count > 0; --count) {
    const Death death{.worker = draft.some_worker(),
                      .when = draft.some_trigger(),
                      .loses_messages = random.bernoulli(0.5)};
    draft.scenario().deaths.push_back(death);
    draft.describe("worker {} dies {}{}", death.worker, HuntDraft::words(death.when),
                   death.loses_messages ? " with its messages" : "");
    if (!random.bernoulli(0.6)) continue;
    Join join{.worker = death.worker,
              .when = random.bernoulli(0.7) ? draft.after(death.when) : draft.some_trigger()};
    draft.scenario().joins.push_back(join);
    draft.describe("worker {} is restarted {}", join.worker, HuntDraft::words(join.when));
  }
  if (draft.job().workers > 1 && random.bernoulli(0.3)) {
    const Join join{.worker = draft.job().workers - 1, .when = draft.some_trigger()};
    draft.scenario().joins.push_back(join);
    draft.describe("worker {} joins {}", join.worker, HuntDraft::words(join.when));
  }
  for (uint32_t count = random.number(0, 2); count > 0; --count) {
    const Partition partition{.selector = {.node = random.number(0, 1), .workers = {}},
                              .when = draft.some_trigger(),
                              .length = random.time(0.1, 8.0)};
    draft.scenario().partitions.push_back(partition);
    draft.describe("node {} cannot be reached for {:.2f} s {}", *partition.selector.node,
                   seconds(partition.length), HuntDraft::words(partition.when));
  }
  if (random.bernoulli(0.2)) {
    const CorruptGradient corrupt{
        .worker = draft.some_worker(),
        .step = random.number(0, static_cast<uint32_t>(draft.job().steps) - 1)};
    draft.scenario().corrupt_gradients.push_back(corrupt);
    draft.describe("worker {}'s gradient of step {} has NaN", corrupt.worker, corrupt.step);
  }
}

void draw_recovery(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  Scenario& scenario = draft.scenario();
  RandomDraws& random = draft.random;
  if (!random.bernoulli(0.4)) return;
  if (random.bernoulli(0.8)) {
    job.checkpoint_every = random.number(1, 4);
    job.checkpoint_dir = "checkpoints";
    scenario.disk = {.write = random.time(0.0, random.bernoulli(0.3) ? 4.0 : 0.2),
                     .read = random.time(0.0, 2.0),
                     .failures = random.bernoulli(0.2) ? random.between(0.05, 0.5) : 0.0};
    draft.describe("a checkpoint every {} steps takes {:.2f} s; {:.0f} % of writes fail",
                   job.checkpoint_every, seconds(scenario.disk.write),
                   100 * scenario.disk.failures);
  }
  job.recovers = random.bernoulli(0.9);
  job.standby =
      job.recovers && !job.asynchronous && !job.pull.is_partial() && random.bernoulli(0.5);
  job.incarnation = 1;
  if (job.recovers)
    draft.describe("the run recovers{}", job.standby ? ", and each shard has a standby" : "");
  for (uint32_t count = random.number(0, 3); count > 0; --count) {
    const ServerDeath death = some_server_death(draft);
    scenario.server_deaths.push_back(death);
    draft.describe("{} dies {}{}, and is restarted {:.2f} s later",
                   peer_name(death.role, death.index), HuntDraft::words(death.when),
                   death.loses_messages ? " with its messages" : "", seconds(death.back));
  }
  if (!job.recovers) return;
  for (const Death& death : scenario.deaths)
    scenario.joins.push_back({.worker = death.worker, .when = draft.after(death.when)});
}

// A shard breaks the protocol.
void draw_standby_faults(HuntDraft& draft) {
  const CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  if (!job.standby || !random.bernoulli(0.5)) return;
  constexpr Duration kNever = std::chrono::hours(24);
  const ShardId shard = random.number(0, job.shards - 1);
  ServerDeath standby{.role = Role::kStandby, .index = shard, .loses_messages = true};
  if (random.bernoulli(0.5)) {
    standby.when.step = job.steps - 1 - (random.bernoulli(0.5) ? 0 : random.number(0, 1));
    standby.back = kNever;
    draft.scenario().server_deaths.push_back(standby);
    draft.describe("standby {} dies {} permanently", shard, HuntDraft::words(standby.when));
    return;
  }
  standby.when.at = random.time(0.5, 1.5 * static_cast<double>(job.steps));
  standby.back = random.time(0.1, 1.0);
  ServerDeath served{.role = Role::kShard, .index = shard, .loses_messages = true};
  const Duration after = standby.back + random.time(0.3, 2.5);
  served.when.at = standby.when.at + after;
  served.back = random.time(0.01, 3.0);
  draft.scenario().server_deaths.insert(draft.scenario().server_deaths.end(), {standby, served});
  draft.describe("standby {} dies {} and is restarted {:.2f} s later; its shard dies {}", shard,
                 HuntDraft::words(standby.when), seconds(standby.back),
                 HuntDraft::words(served.when));
  if (job.shards == 1) return;
  // Meanwhile another shard hangs. So the coordinator waits for it, while this shard is ahead.
  const Stall stall{.shard = (shard + 1) % job.shards, .when = standby.when, .length = after};
  draft.scenario().stalls.push_back(stall);
  draft.describe("shard {} hangs for {:.2f} s from then on", stall.shard, seconds(stall.length));
}

void draw_repeated_closings(HuntDraft& draft) {
  const CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  if (!random.bernoulli(0.15)) return;
  for (uint32_t count = random.number(1, 2); count > 0; --count) {
    const RepeatedClosing each{.shard = random.number(0, job.shards - 1),
                               .step = random.number(0, static_cast<uint32_t>(job.steps) - 1)};
    draft.scenario().repeated_closings.push_back(each);
    draft.describe("shard {} reports twice that it has closed step {}", each.shard, each.step);
  }
}

}  // namespace drover

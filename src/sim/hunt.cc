#include "sim/hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "core/block_share.h"
#include "core/chance.h"
#include "core/check.h"
#include "policy/catalogue.h"
#include "sim/overheard_policy.h"
#include "sim/pull_task.h"
#include "sim/referee.h"

namespace drover {
namespace {

constexpr double kLearningRate = 0.1;
constexpr uint32_t kShardsMost = 4;
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

constexpr std::array<std::string_view, 18> kPolicies = {
    "sync",    "sync",        "static:0.5",  "static:k=3", "deadline:1.2", "mad",
    "elfving", "ecdf",        "ecdf:pooled", "ewma",       "bandit",       "elfving-online",
    "dbw",     "dropcompute", "oracle",      "async",      "ssp:1",        "ssp:3"};

// One draw after the other from a seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  double share() {
    return unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kFaults), next_++}));
  }
  bool chance(double probability) { return share() < probability; }
  // From `first` to `last`, both included.
  uint32_t number(uint32_t first, uint32_t last) {
    return first + static_cast<uint32_t>(share() * (last - first + 1));
  }
  double between(double low, double high) { return low + share() * (high - low); }
  Duration time(double low, double high) { return from_seconds(between(low, high)); }

 private:
  const uint64_t seed_;
  uint64_t next_ = 0;
};

struct Author {
  Dice dice;
  HuntCase hunt;

  Scenario& scenario() { return hunt.settings.scenario; }
  CoordinatorSettings& job() { return hunt.settings.coordinator; }
  template <typename... Parts>
  void tell(fmt::format_string<Parts...> words, Parts&&... parts) {
    hunt.story.push_back(fmt::format(words, std::forward<Parts>(parts)...));
  }

  WorkerId some_worker() { return dice.number(0, job().workers - 1); }
  // Soon after another.
  Moment after(const Moment& moment) {
    if (moment.step) return {.step = *moment.step + dice.number(0, 2)};
    return {.step = std::nullopt, .at = moment.at + dice.time(0.0, 2.0)};
  }
  Moment some_moment() {
    if (dice.chance(0.5)) return {.step = dice.number(0, static_cast<uint32_t>(job().steps) - 1)};
    return {.step = std::nullopt, .at = dice.time(0.0, 1.5 * static_cast<double>(job().steps))};
  }
  static std::string words(const Moment& moment) {
    return moment.step ? fmt::format("when step {} opens", *moment.step)
                       : fmt::format("at {:.3f} s", seconds(moment.at));
  }

  void write_job() {
    CoordinatorSettings& settings = job();
    settings.workers = dice.number(1, 8);
    settings.shards = dice.number(1, kShardsMost);
    // Now and then a long one: to see that what is remembered is forgotten.
    const bool is_long = dice.chance(0.01);
    settings.steps = is_long ? dice.number(150, 250) : dice.number(3, 12);
    settings.learning.deterministic = dice.chance(0.3);
    settings.evaluator = dice.chance(0.3);
    settings.evaluate_every = dice.number(0, 3);
    settings.learning.schedule.base = kLearningRate;
    settings.learning.optimizer.kind = OptimizerKind::kSgd;
    if (dice.chance(0.3)) settings.limits.at_least = dice.number(1, 4);
    if (dice.chance(0.3)) settings.limits.max_wait = dice.between(0.5, 4.0);
    if (dice.chance(0.2)) settings.limits.min_inclusion = dice.between(0.05, 0.5);
    hunt.settings.batch = dice.number(1, 3);
    if (dice.chance(0.4)) {
      for (WorkerId worker = 0; worker < settings.workers; ++worker)
        hunt.settings.batches.push_back(dice.number(1, 4));
      tell("workers have batches of different sizes");
    }
    if (dice.chance(0.4)) {
      hunt.settings.window_bytes = 1;
      tell("shards take one large block at a time");
    }
    hunt.policy = kPolicies[dice.number(0, kPolicies.size() - 1)];
    const auto free = free_running_of(hunt.policy);
    DROVER_CHECK(free.ok());
    settings.free_running = free.value();
    if (settings.free_running) settings.learning.deterministic = false;
    tell("{} workers, {} shards, {} steps, policy {}{}", settings.workers, settings.shards,
         settings.steps, hunt.policy, settings.learning.deterministic ? ", deterministic" : "");
  }

  void write_run_times() {
    constexpr std::array kKinds = {RunTimeKind::kConstant, RunTimeKind::kNormal,
                                   RunTimeKind::kLognormal, RunTimeKind::kShiftedExponential,
                                   RunTimeKind::kPareto};
    RunTimeLaw law{.kind = kKinds[dice.number(0, kKinds.size() - 1)],
                   .mean = dice.between(0.2, 2.0),
                   .deviation = dice.between(0.0, 1.0),
                   .shift = dice.between(0.1, 1.0),
                   .shape = dice.between(1.2, 3.0)};
    scenario().run_times.push_back({{}, law});
    if (dice.chance(0.5)) {
      scenario().regimes.push_back({.whom = {},
                                    .by_node = dice.chance(0.5),
                                    .enter = dice.between(0.0, 0.3),
                                    .leave = dice.between(0.1, 0.9),
                                    .factor = dice.between(1.5, 20.0)});
    }
    const uint32_t first = dice.number(0, job().workers);
    scenario().nodes = {first, job().workers - first};
  }

  void write_network() {
    scenario().links.push_back({{},
                                {.latency = dice.time(0.0, 0.2),
                                 .jitter = dice.chance(0.5) ? dice.time(0.0, 0.3) : Duration{},
                                 .bytes_per_second = dice.chance(0.5) ? dice.between(1e4, 1e6) : 0,
                                 .loss = dice.chance(0.5) ? dice.between(0.0, 0.2) : 0.0,
                                 .duplication = dice.chance(0.5) ? dice.between(0.0, 0.3) : 0.0,
                                 .reordering = dice.chance(0.5) ? dice.between(0.0, 0.3) : 0.0,
                                 .resend = dice.time(0.05, 0.5)}});
    if (dice.chance(0.3)) {
      const SlowShard slow{.shard = dice.number(0, job().shards - 1),
                           .share = dice.between(0.0, 0.5),
                           .delay = dice.time(0.1, 4.0)};
      scenario().slow_shards.push_back(slow);
      tell("{:.0f} % of shard {}'s answers come {:.2f} s late", 100 * slow.share, *slow.shard,
           seconds(slow.delay));
    }
    if (dice.chance(0.3)) {
      const SlowCoordinator slow{.share = dice.between(0.1, 1.0), .delay = dice.time(0.1, 5.0)};
      scenario().slow_coordinator = slow;
      tell("{:.0f} % of what the coordinator says comes {:.2f} s late", 100 * slow.share,
           seconds(slow.delay));
    }
  }

  void write_faults() {
    for (uint32_t count = dice.number(0, 3); count > 0; --count) {
      const Death death{
          .worker = some_worker(), .when = some_moment(), .loses_messages = dice.chance(0.5)};
      scenario().deaths.push_back(death);
      tell("worker {} dies {}{}", death.worker, words(death.when),
           death.loses_messages ? " with its messages" : "");
      if (!dice.chance(0.6)) continue;
      Join join{.worker = death.worker,
                .when = dice.chance(0.7) ? after(death.when) : some_moment()};
      scenario().joins.push_back(join);
      tell("worker {} comes back {}", join.worker, words(join.when));
    }
    if (job().workers > 1 && dice.chance(0.3)) {
      const Join join{.worker = job().workers - 1, .when = some_moment()};
      scenario().joins.push_back(join);
      tell("worker {} joins {}", join.worker, words(join.when));
    }
    for (uint32_t count = dice.number(0, 2); count > 0; --count) {
      const Partition partition{.whom = {.node = dice.number(0, 1), .workers = {}},
                                .when = some_moment(),
                                .length = dice.time(0.1, 8.0)};
      scenario().partitions.push_back(partition);
      tell("node {} cannot be reached for {:.2f} s {}", *partition.whom.node,
           seconds(partition.length), words(partition.when));
    }
    if (dice.chance(0.2)) {
      const Poison poison{.worker = some_worker(),
                          .step = dice.number(0, static_cast<uint32_t>(job().steps) - 1)};
      scenario().poisons.push_back(poison);
      tell("worker {}'s gradient of step {} has NaN", poison.worker, poison.step);
    }
  }
};

void write_stragglers(Author& author) {
  CoordinatorSettings& job = author.job();
  job.seed = author.hunt.settings.seed;
  if (author.dice.chance(0.2)) {
    job.stragglers = StragglerRule::kFinish;
    author.tell("stragglers finish");
  } else if (author.dice.chance(0.4)) {
    job.probe = author.dice.chance(0.3) ? 1.0 : author.dice.between(0.05, 0.8);
    author.tell("{:.0f} % of stragglers finish", 100 * job.probe);
  }
}

// Where the policy has a forecast to decide by again inside a step.
void write_live(Author& author) {
  if (!author.dice.chance(0.5)) return;
  author.hunt.live = make_policy(author.hunt.policy, {.live = true}).ok();
  if (author.hunt.live) author.tell("decided again inside steps");
}

// Shards that hang, workers that go on without some blocks, and blocks that wait for more.
void write_weak(Author& author) {
  CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  if (dice.chance(0.25)) {
    const Stall stall{.shard = dice.number(0, job.shards - 1),
                      .when = author.some_moment(),
                      .length = dice.time(0.1, 8.0)};
    author.scenario().stalls.push_back(stall);
    author.tell("shard {} hangs for {:.2f} s {}", stall.shard, seconds(stall.length),
                Author::words(stall.when));
  }
  if (job.free_running) return;
  if (dice.chance(0.3)) {
    job.push_grace = dice.time(0.001, 0.5);
    author.tell("blocks wait {:.3f} s longer", seconds(job.push_grace));
  }
  if (!dice.chance(0.4)) return;
  job.learning.deterministic = false;
  job.pull.choose = dice.chance(0.2);
  job.pull.warmup = dice.number(0, 3);
  if (!job.pull.choose) job.pull.share = dice.between(0.1, 0.99);
  if (dice.chance(0.5)) job.pull.grace = dice.time(0.001, 0.5);
  author.tell("workers go on with {} of the blocks, after {:.3f} s",
              job.pull.choose ? std::string("some") : fmt::format("{:.0f} %", 100 * job.pull.share),
              seconds(job.pull.grace));
}

// Work is dealt by speed.
void write_balance(Author& author) {
  CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  if (!dice.chance(0.15) || job.free_running || !author.hunt.settings.batches.empty()) return;
  author.hunt.settings.batch = job.batch = dice.number(4, 12);
  job.full_samples = uint64_t{job.batch} * job.workers;
  job.balance = BalanceSettings{.least = dice.between(0.2, 0.5),
                                .most = dice.between(1.5, 3.0),
                                .warmup = dice.number(1, 3),
                                .seed = author.hunt.settings.seed};
  author.tell("samples are dealt by speed");
}

// Gradients that are too long are refused or clipped, and fewer than half of the workers lie.
void write_guard(Author& author) {
  CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  if (!dice.chance(0.2) || job.workers < kGuardWorkersMin || job.free_running || job.balance ||
      job.pull.weak())
    return;
  job.learning.guard = dice.chance(0.5) ? GuardRule::kNorm : GuardRule::kRefuse;
  author.tell("gradients that are too long are {}",
              job.learning.guard == GuardRule::kNorm ? "clipped" : "refused");
  for (uint32_t count = dice.number(0, (job.workers - 1) / 2); count > 0; --count) {
    constexpr std::array kFactors = {-30.0, 3.0, 300.0, 3000.0};
    const Lie lie{.worker = author.some_worker(),
                  .factor = kFactors[dice.number(0, kFactors.size() - 1)],
                  .step = dice.number(0, static_cast<uint32_t>(job.steps) - 1)};
    author.scenario().lies.push_back(lie);
    author.tell("worker {}'s gradients are {} times what they should be from step {} on",
                lie.worker, lie.factor, *lie.step);
  }
}

// Workers bring their model, say the learning rate, and leave when they like.
void write_scripts(Author& author) {
  CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  if (!dice.chance(0.2) || job.free_running || job.balance) return;
  job.workers_bring_model = true;
  job.evaluator = false;
  SimulatedScripts scripts{.first_rate = kLearningRate,
                           .rate = dice.between(0.02, 0.2),
                           .changes_at = dice.number(0, static_cast<uint32_t>(job.steps)),
                           .pulls_ahead = !job.pull.weak() && dice.chance(0.5)};
  author.hunt.settings.scripts = scripts;
  author.tell("workers bring their model{}; from step {} on their learning rate is {:.3f}",
              scripts.pulls_ahead ? " and pull ahead" : "", scripts.changes_at, scripts.rate);
  for (uint32_t count = dice.chance(0.4) ? dice.number(1, job.workers) : 0; count > 0; --count) {
    const Leave leave{.worker = author.some_worker(),
                      .before = dice.number(1, static_cast<uint32_t>(job.steps)),
                      .fails = dice.chance(0.3)};
    author.scenario().leaves.push_back(leave);
    author.tell("worker {} {} before step {}", leave.worker,
                leave.fails ? "raises an exception" : "leaves", leave.before);
  }
}

// Workers of two speeds that never change, a network that takes the same time for all, and a policy
// that waits for all: which worker is slower is certain.
void write_steady_speeds(Author& author) {
  Scenario& scenario = author.scenario();
  Dice& dice = author.dice;
  if (!author.job().balance || !dice.chance(0.3)) return;
  const double fast = dice.between(0.5, 1.0);
  const double slow = fast * dice.between(1.6, 4.0);
  const WorkerId first_slow = dice.number(0, author.job().workers);
  const WorkerId last = author.job().workers - 1;
  scenario.regimes.clear();
  scenario.run_times = {{{}, {.mean = fast}}};
  if (first_slow <= last)
    scenario.run_times.push_back({{.workers = std::pair(first_slow, last)}, {.mean = slow}});
  scenario.links = {{{}, {.latency = dice.time(0.0, 0.01)}}};
  scenario.slow_shards.clear();
  scenario.slow_coordinator.reset();
  scenario.partitions.clear();
  scenario.stalls.clear();
  author.hunt.policy = "sync";
  author.hunt.live = false;
  author.job().limits = {};
  author.job().pull = {};
  author.hunt.steady_speeds = [=](WorkerId worker) { return worker < first_slow ? fast : slow; };
  author.tell(
      "instead, workers from {} on take {:.2f} s and those before {:.2f} s, always; the "
      "network is perfect, the policy is sync, and all "
      "blocks are pulled",
      first_slow, slow, fast);
}

void write_momentum(Author& author) {
  CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  // What was clipped is not known exactly, and momentum would add that up.
  if (!dice.chance(0.3) || job.learning.guard != GuardRule::kOff) return;
  job.learning.optimizer.kind = OptimizerKind::kMomentum;
  // More of it makes a run diverge whose gradients are of old parameters.
  const bool stale = job.free_running || job.pull.weak();
  job.learning.optimizer.momentum = stale ? dice.between(0.1, 0.25) : dice.between(0.3, 0.9);
  author.tell("with a momentum of {:.2f}", job.learning.optimizer.momentum);
}

// A shard breaks the protocol.
void write_repeated_closings(Author& author) {
  const CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  if (!dice.chance(0.15)) return;
  for (uint32_t count = dice.number(1, 2); count > 0; --count) {
    const RepeatedClosing each{.shard = dice.number(0, job.shards - 1),
                               .step = dice.number(0, static_cast<uint32_t>(job.steps) - 1)};
    author.scenario().repeated_closings.push_back(each);
    author.tell("shard {} says twice that it has closed step {}", each.shard, each.step);
  }
}

ServerDeath some_server_death(Author& author) {
  const CoordinatorSettings& job = author.job();
  Dice& dice = author.dice;
  ServerDeath death{.role = Role::kShard,
                    .index = dice.number(0, job.shards - 1),
                    .when = author.some_moment(),
                    .back = dice.time(0.01, 3.0),
                    .loses_messages = dice.chance(0.5)};
  const double which = dice.share();
  if (job.standby && which < 0.3) {
    death.role = Role::kStandby;
  } else if (job.recovers && which < 0.6) {
    death.role = job.evaluator && dice.chance(0.2) ? Role::kEvaluator : Role::kCoordinator;
    death.index = 0;
  }
  return death;
}

// Checkpoints, standbys, and servers that die or break the protocol. Where the run recovers all
// that is lost comes back.
void write_recovery(Author& author) {
  CoordinatorSettings& job = author.job();
  Scenario& scenario = author.scenario();
  Dice& dice = author.dice;
  if (!dice.chance(0.4)) return;
  if (dice.chance(0.8)) {
    job.checkpoint_every = dice.number(1, 4);
    job.checkpoint_dir = "checkpoints";
    scenario.disk = {.write = dice.time(0.0, dice.chance(0.3) ? 4.0 : 0.2),
                     .read = dice.time(0.0, 2.0),
                     .failures = dice.chance(0.2) ? dice.between(0.05, 0.5) : 0.0};
    author.tell("a checkpoint every {} steps, in {:.2f} s; {:.0f} % of writes fail",
                job.checkpoint_every, seconds(scenario.disk.write), 100 * scenario.disk.failures);
  }
  job.recovers = dice.chance(0.9);
  job.standby = job.recovers && !job.free_running && !job.pull.weak() && dice.chance(0.5);
  job.life = 1;
  if (job.recovers)
    author.tell("the run recovers{}", job.standby ? ", and each shard has a standby" : "");
  for (uint32_t count = dice.number(0, 3); count > 0; --count) {
    const ServerDeath death = some_server_death(author);
    scenario.server_deaths.push_back(death);
    author.tell("{} dies {}{}, and is back {:.2f} s later", peer_name(death.role, death.index),
                Author::words(death.when), death.loses_messages ? " with its messages" : "",
                seconds(death.back));
  }
  if (!job.recovers) return;
  for (const Death& death : scenario.deaths)
    scenario.joins.push_back({.worker = death.worker, .when = author.after(death.when)});
}

uint32_t faults_in(const Scenario& scenario) {
  return static_cast<uint32_t>(scenario.deaths.size() + scenario.server_deaths.size() +
                               scenario.repeated_closings.size() + scenario.leaves.size());
}

// Whether it may have to restart.
bool interrupted(const HuntCase& hunt) {
  const Scenario& scenario = hunt.settings.scenario;
  return !scenario.server_deaths.empty() || !scenario.repeated_closings.empty();
}

// Whether its parameters may depend on nothing but the gradients: everybody is in every step.
bool is_calm(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  const Scenario& scenario = hunt.settings.scenario;
  return job.learning.deterministic && hunt.policy == "sync" &&
         job.limits.max_wait == kNoTimeLimit && scenario.deaths.empty() && scenario.joins.empty() &&
         scenario.leaves.empty() && !job.balance &&
         (!interrupted(hunt) ||
          (scenario.partitions.empty() && !scenario.slow_coordinator && job.recovers));
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
  return from_seconds(job.pull.weak() ? kStepsBehind * step : step);
}

double momentum_of(const OptimizerSettings& optimizer) {
  return optimizer.kind == OptimizerKind::kMomentum ? optimizer.momentum : 0.0;
}

RefereeSettings rules_for(const HuntCase& hunt) {
  const CoordinatorSettings& job = hunt.settings.coordinator;
  const auto target_of = [](uint64_t first, uint32_t count) {
    return PullTask::target({.first = first, .count = count});
  };
  const auto lie = [&hunt](Step step, WorkerId worker) {
    double factor = 1.0;
    for (const Lie& each : hunt.settings.scenario.lies) {
      if (each.worker == worker && step >= each.step.value_or(0)) factor *= each.factor;
    }
    return factor;
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
  if (job.pull.weak()) needed = job.pull.choose ? 0 : blocks_needed(job.pull.share, blocks);
  std::set<WorkerId> liars;
  for (const Lie& each : hunt.settings.scenario.lies) liars.insert(each.worker);
  std::function<double(Step)> rate_at;
  if (hunt.settings.scripts) {
    rate_at = [&hunt](Step step) { return hunt.settings.scripts->rate_at(step); };
  }
  ShareBook::Settings shares;
  if (job.balance) {
    shares = {.batch = job.batch,
              .least = job.balance->least,
              .most = job.balance->most,
              .seconds = hunt.steady_speeds,
              .warmup = job.balance->warmup};
  }
  // Members that come back, and what is under way to those that have gone.
  const size_t restarts = job.recovers ? 200 : 0;
  const size_t ahead = needed ? kKeptAhead * (job.shards + 1) + size_t{blocks} * job.workers : 0;
  return {
      .steps = job.steps,
      .learning_rate = kLearningRate,
      .rate_at = rate_at,
      .momentum = momentum_of(job.learning.optimizer),
      .free_running = job.free_running.has_value(),
      .staleness = job.free_running.value_or(FreeRunning{}).staleness,
      .all_finish = job.stragglers == StragglerRule::kFinish,
      .probe = job.probe,
      .probe_seed = job.seed,
      .target = target,
      .target_of = job.balance ? std::function<double(uint64_t, uint32_t)>(target_of) : nullptr,
      .lie = lie,
      .guard = {.rule = job.learning.guard, .liars = liars, .workers = job.workers},
      .shares = shares,
      .checkpoints = {.steps = job.steps,
                      .every = job.checkpoint_every,
                      .writes_fail = hunt.settings.scenario.disk.failures > 0.0,
                      .recovers = job.recovers,
                      .restarts_most = kRestartsPerFault * (1 + faults_in(hunt.settings.scenario))},
      .recovers = job.recovers,
      .servers_die = interrupted(hunt),
      .scripts = hunt.settings.scripts.has_value(),
      .may_leave = !hunt.settings.scenario.leaves.empty(),
      .blocks_needed = needed,
      .push_grace = job.push_grace,
      // The news of a step that waits for a standby is that much later.
      .exact_times = !needed && !job.standby && times_are_exact(hunt.settings.scenario),
      .step_limit = 4 * slowest(hunt) + slowest_transfer(hunt) + kDetours +
                    (job.recovers ? kRestartMost : Duration()),
      .events_limit = 100 + restarts + 100 * size_t{job.workers} * job.shards,
      .kept_limit = kKeptInAll + kKeptOfEach * size_t{job.workers} + ahead,
      .shard_kept_limit = kKeptInAll + kShardKeptOfEach * size_t{job.workers} + ahead};
}

HuntResult run_once(const HuntCase& hunt) {
  PullTask task(hunt.settings.scripts.has_value());
  const CoordinatorSettings& job = hunt.settings.coordinator;
  Referee referee(rules_for(hunt));
  RunTimes future(hunt.settings.scenario, job.workers, hunt.settings.seed);
  const auto foresight = [&](Step step, std::span<const WorkerId> alive) {
    std::vector<double> times;
    for (const WorkerId worker : alive) times.push_back(future.seconds(step, worker));
    return times;
  };
  const auto policy = [&]() -> std::unique_ptr<Policy> {
    if (job.free_running) return nullptr;
    auto made = make_policy(
        hunt.policy,
        {.warmup = 2, .seed = hunt.settings.seed, .live = hunt.live, .foresight = foresight});
    DROVER_CHECK(made.ok());
    return std::make_unique<OverheardPolicy>(
        std::move(made).value(), [&](const StepTimes& times) { referee.on_learned(times); },
        [&](Step step, WorkerId worker) { referee.on_learned_late(step, worker); });
  };
  Simulation simulation(hunt.settings, policy, task, {&referee}, &referee);
  const auto end = simulation.run([&] { return referee.verdict().empty(); });
  if (end) referee.on_run_over(end.value());
  return {referee.verdict(), end ? end.value() : RunEnd{}, referee.most()};
}

}  // namespace

HuntCase make_hunt_case(uint64_t seed) {
  Author author{Dice(seed), {}};
  author.hunt.settings.seed = seed;
  author.write_job();
  author.write_run_times();
  author.write_network();
  author.write_faults();
  write_stragglers(author);
  write_live(author);
  write_weak(author);
  write_balance(author);
  write_guard(author);
  write_scripts(author);
  write_recovery(author);
  write_repeated_closings(author);
  write_steady_speeds(author);
  write_momentum(author);
  uint32_t at_start = 0;
  for (WorkerId worker = 0; worker < author.job().workers; ++worker)
    at_start += author.scenario().joins_later(worker) ? 0 : 1;
  author.job().workers_at_start = at_start;
  return author.hunt;
}

HuntResult run_hunt_case(const HuntCase& hunt) {
  HuntResult result = run_once(hunt);
  if (!result.verdict.empty() || !is_calm(hunt)) return result;
  if (result.end.outcome != RunOutcome::kCompleted) return result;
  // The same gradients in another order, through other shards.
  HuntCase again = hunt;
  again.settings.seed = ~hunt.settings.seed;
  // With other shards tensors are cut into other blocks, whose norms are rounded differently.
  if (hunt.settings.coordinator.learning.guard == GuardRule::kOff)
    again.settings.coordinator.shards = 1 + hunt.settings.coordinator.shards % kShardsMost;
  for (Stall& stall : again.settings.scenario.stalls)
    stall.shard %= again.settings.coordinator.shards;
  // As if it had never been interrupted.
  again.settings.scenario.server_deaths.clear();
  again.settings.scenario.repeated_closings.clear();
  const HuntResult other = run_once(again);
  result.verdict = other.verdict;
  if (other.verdict.empty() && other.end.parameters_digest != result.end.parameters_digest)
    result.verdict = interrupted(hunt)
                         ? "without interruptions the parameters are different"
                         : "with another order of messages the parameters are different";
  return result;
}

}  // namespace drover

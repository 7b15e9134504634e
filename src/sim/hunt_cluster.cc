#include "sim/hunt_cluster.h"

#include <array>
#include <string_view>

#include "core/check.h"
#include "policy/catalogue.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 18> kPolicies = {
    "sync",    "sync",        "static:0.5",  "static:k=3", "deadline:1.2", "mad",
    "elfving", "ecdf",        "ecdf:pooled", "ewma",       "bandit",       "elfving-online",
    "dbw",     "dropcompute", "oracle",      "async",      "ssp:1",        "ssp:3"};

}  // namespace

void draw_job(HuntDraft& draft) {
  Dice& dice = draft.dice;
  HuntCase& hunt = draft.hunt;
  CoordinatorSettings& settings = draft.job();
  settings.workers = dice.number(1, 8);
  settings.shards = dice.number(1, HuntCase::kShardsMost);
  // Now and then a long one: to see that what is remembered is forgotten.
  const bool is_long = dice.chance(0.01);
  settings.steps = is_long ? dice.number(150, 250) : dice.number(3, 12);
  settings.learning.deterministic = dice.chance(0.3);
  settings.evaluator = dice.chance(0.3);
  settings.evaluate_every = dice.number(0, 3);
  settings.learning.schedule.base = HuntCase::kLearningRate;
  settings.learning.optimizer.kind = OptimizerKind::kSgd;
  if (dice.chance(0.3)) settings.limits.at_least = dice.number(1, 4);
  if (dice.chance(0.3)) settings.limits.max_wait = dice.between(0.5, 4.0);
  if (dice.chance(0.2)) settings.limits.min_inclusion = dice.between(0.05, 0.5);
  hunt.settings.batch = dice.number(1, 3);
  if (dice.chance(0.4)) {
    for (WorkerId worker = 0; worker < settings.workers; ++worker)
      hunt.settings.batches.push_back(dice.number(1, 4));
    draft.describe("workers have batches of different sizes");
  }
  if (dice.chance(0.4)) {
    hunt.settings.window_bytes = 1;
    draft.describe("shards take one large block at a time");
  }
  hunt.policy = kPolicies[dice.number(0, kPolicies.size() - 1)];
  const auto free = asynchronous_of(hunt.policy);
  DROVER_CHECK(free.ok());
  settings.asynchronous = free.value();
  if (settings.asynchronous) settings.learning.deterministic = false;
  draft.describe("{} workers, {} shards, {} steps, policy {}{}", settings.workers, settings.shards,
                 settings.steps, hunt.policy,
                 settings.learning.deterministic ? ", deterministic" : "");
}

void draw_run_times(HuntDraft& draft) {
  Dice& dice = draft.dice;
  constexpr std::array kKinds = {RunTimeKind::kConstant, RunTimeKind::kNormal,
                                 RunTimeKind::kLognormal, RunTimeKind::kShiftedExponential,
                                 RunTimeKind::kPareto};
  RunTimeLaw law{.kind = kKinds[dice.number(0, kKinds.size() - 1)],
                 .mean = dice.between(0.2, 2.0),
                 .deviation = dice.between(0.0, 1.0),
                 .shift = dice.between(0.1, 1.0),
                 .shape = dice.between(1.2, 3.0)};
  draft.scenario().run_times.push_back({{}, law});
  if (dice.chance(0.5)) {
    draft.scenario().regimes.push_back({.whom = {},
                                        .by_node = dice.chance(0.5),
                                        .enter = dice.between(0.0, 0.3),
                                        .leave = dice.between(0.1, 0.9),
                                        .factor = dice.between(1.5, 20.0)});
  }
  const uint32_t first = dice.number(0, draft.job().workers);
  draft.scenario().nodes = {first, draft.job().workers - first};
}

void draw_network(HuntDraft& draft) {
  Dice& dice = draft.dice;
  draft.scenario().links.push_back(
      {{},
       {.latency = dice.time(0.0, 0.2),
        .jitter = dice.chance(0.5) ? dice.time(0.0, 0.3) : Duration{},
        .bytes_per_second = dice.chance(0.5) ? dice.between(1e4, 1e6) : 0,
        .loss = dice.chance(0.5) ? dice.between(0.0, 0.2) : 0.0,
        .duplication = dice.chance(0.5) ? dice.between(0.0, 0.3) : 0.0,
        .reordering = dice.chance(0.5) ? dice.between(0.0, 0.3) : 0.0,
        .resend = dice.time(0.05, 0.5)}});
  if (dice.chance(0.3)) {
    const SlowShard slow{.shard = dice.number(0, draft.job().shards - 1),
                         .share = dice.between(0.0, 0.5),
                         .delay = dice.time(0.1, 4.0)};
    draft.scenario().slow_shards.push_back(slow);
    draft.describe("{:.0f} % of shard {}'s answers come {:.2f} s late", 100 * slow.share,
                   *slow.shard, seconds(slow.delay));
  }
  if (dice.chance(0.3)) {
    const SlowCoordinator slow{.share = dice.between(0.1, 1.0), .delay = dice.time(0.1, 5.0)};
    draft.scenario().slow_coordinator = slow;
    draft.describe("{:.0f} % of what the coordinator says comes {:.2f} s late", 100 * slow.share,
                   seconds(slow.delay));
  }
}

// Workers of two speeds that never change, a network that takes the same time for all, and a policy
// that waits for all: which worker is slower is certain.
void draw_steady_speeds(HuntDraft& draft) {
  Scenario& scenario = draft.scenario();
  Dice& dice = draft.dice;
  if (!draft.job().balance || !dice.chance(0.3)) return;
  const double fast = dice.between(0.5, 1.0);
  const double slow = fast * dice.between(1.6, 4.0);
  const WorkerId first_slow = dice.number(0, draft.job().workers);
  const WorkerId last = draft.job().workers - 1;
  scenario.regimes.clear();
  scenario.run_times = {{{}, {.mean = fast}}};
  if (first_slow <= last)
    scenario.run_times.push_back({{.workers = std::pair(first_slow, last)}, {.mean = slow}});
  scenario.links = {{{}, {.latency = dice.time(0.0, 0.01)}}};
  scenario.slow_shards.clear();
  scenario.slow_coordinator.reset();
  scenario.partitions.clear();
  scenario.stalls.clear();
  draft.hunt.policy = "sync";
  draft.hunt.live = false;
  draft.job().limits = {};
  draft.job().pull = {};
  draft.hunt.steady_speeds = [=](WorkerId worker) { return worker < first_slow ? fast : slow; };
  draft.describe(
      "instead, workers from {} on take {:.2f} s and those before {:.2f} s, always; the "
      "network is perfect, the policy is sync, and all "
      "blocks are pulled",
      first_slow, slow, fast);
}

}  // namespace drover

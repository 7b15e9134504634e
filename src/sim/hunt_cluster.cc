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
  RandomDraws& random = draft.random;
  HuntCase& hunt = draft.hunt;
  CoordinatorSettings& settings = draft.job();
  settings.workers = random.number(1, 8);
  settings.shards = random.number(1, HuntCase::kShardsMost);
  // A few long runs check that state of old steps is freed.
  const bool is_long = random.bernoulli(0.01);
  settings.steps = is_long ? random.number(150, 250) : random.number(3, 12);
  settings.learning.deterministic = random.bernoulli(0.3);
  settings.evaluator = random.bernoulli(0.3);
  settings.evaluate_every = random.number(0, 3);
  settings.learning.schedule.base = HuntCase::kLearningRate;
  settings.learning.optimizer.kind = OptimizerKind::kSgd;
  if (random.bernoulli(0.3)) settings.limits.at_least = random.number(1, 4);
  if (random.bernoulli(0.3)) settings.limits.max_wait = random.between(0.5, 4.0);
  if (random.bernoulli(0.2)) settings.limits.min_inclusion = random.between(0.05, 0.5);
  hunt.settings.batch = random.number(1, 3);
  if (random.bernoulli(0.4)) {
    for (WorkerId worker = 0; worker < settings.workers; ++worker)
      hunt.settings.batches.push_back(random.number(1, 4));
    draft.describe("workers have batches of different sizes");
  }
  if (random.bernoulli(0.4)) {
    hunt.settings.window_bytes = 1;
    draft.describe("shards take one large block at a time");
  }
  hunt.policy = kPolicies[random.number(0, kPolicies.size() - 1)];
  const auto free = asynchronous_of(hunt.policy);
  DROVER_CHECK(free.ok());
  settings.asynchronous = free.value();
  if (settings.asynchronous) settings.learning.deterministic = false;
  draft.describe("{} workers, {} shards, {} steps, policy {}{}", settings.workers, settings.shards,
                 settings.steps, hunt.policy,
                 settings.learning.deterministic ? ", deterministic" : "");
}

void draw_run_times(HuntDraft& draft) {
  RandomDraws& random = draft.random;
  constexpr std::array kKinds = {RunTimeKind::kConstant, RunTimeKind::kNormal,
                                 RunTimeKind::kLognormal, RunTimeKind::kShiftedExponential,
                                 RunTimeKind::kPareto};
  RunTimeLaw law{.kind = kKinds[random.number(0, kKinds.size() - 1)],
                 .mean = random.between(0.2, 2.0),
                 .deviation = random.between(0.0, 1.0),
                 .shift = random.between(0.1, 1.0),
                 .shape = random.between(1.2, 3.0)};
  draft.scenario().run_times.push_back({{}, law});
  if (random.bernoulli(0.5)) {
    draft.scenario().regimes.push_back({.selector = {},
                                        .by_node = random.bernoulli(0.5),
                                        .enter = random.between(0.0, 0.3),
                                        .leave = random.between(0.1, 0.9),
                                        .factor = random.between(1.5, 20.0)});
  }
  const uint32_t first = random.number(0, draft.job().workers);
  draft.scenario().nodes = {first, draft.job().workers - first};
}

void draw_network(HuntDraft& draft) {
  RandomDraws& random = draft.random;
  draft.scenario().links.push_back(
      {{},
       {.latency = random.time(0.0, 0.2),
        .jitter = random.bernoulli(0.5) ? random.time(0.0, 0.3) : Duration{},
        .bytes_per_second = random.bernoulli(0.5) ? random.between(1e4, 1e6) : 0,
        .loss = random.bernoulli(0.5) ? random.between(0.0, 0.2) : 0.0,
        .duplication = random.bernoulli(0.5) ? random.between(0.0, 0.3) : 0.0,
        .reordering = random.bernoulli(0.5) ? random.between(0.0, 0.3) : 0.0,
        .resend = random.time(0.05, 0.5)}});
  if (random.bernoulli(0.3)) {
    const SlowShard slow{.shard = random.number(0, draft.job().shards - 1),
                         .share = random.between(0.0, 0.5),
                         .delay = random.time(0.1, 4.0)};
    draft.scenario().slow_shards.push_back(slow);
    draft.describe("{:.0f} % of shard {}'s answers are {:.2f} s late", 100 * slow.share,
                   *slow.shard, seconds(slow.delay));
  }
  if (random.bernoulli(0.3)) {
    const SlowCoordinator slow{.share = random.between(0.1, 1.0), .delay = random.time(0.1, 5.0)};
    draft.scenario().slow_coordinator = slow;
    draft.describe("{:.0f} % of the coordinator's messages are {:.2f} s late", 100 * slow.share,
                   seconds(slow.delay));
  }
}

// Workers have one of two constant speeds, all links have the same latency, and the policy waits
// for all workers. So it is certain which worker is slower.
void draw_steady_speeds(HuntDraft& draft) {
  Scenario& scenario = draft.scenario();
  RandomDraws& random = draft.random;
  if (!draft.job().balance || !random.bernoulli(0.3)) return;
  const double fast = random.between(0.5, 1.0);
  const double slow = fast * random.between(1.6, 4.0);
  const WorkerId first_slow = random.number(0, draft.job().workers);
  const WorkerId last = draft.job().workers - 1;
  scenario.regimes.clear();
  scenario.run_times = {{{}, {.mean = fast}}};
  if (first_slow <= last)
    scenario.run_times.push_back({{.workers = std::pair(first_slow, last)}, {.mean = slow}});
  scenario.links = {{{}, {.latency = random.time(0.0, 0.01)}}};
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
      "instead, workers from {} on always take {:.2f} s and the others {:.2f} s; the network is "
      "perfect, the policy is sync, and all blocks are pulled",
      first_slow, slow, fast);
}

}  // namespace drover

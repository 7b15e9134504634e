#include "sim/hunt_features.h"

#include <array>

#include "policy/catalogue.h"

namespace drover {

void draw_stragglers(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  job.seed = draft.hunt.settings.seed;
  if (draft.random.bernoulli(0.2)) {
    job.stragglers = StragglerRule::kFinish;
    draft.describe("stragglers finish");
  } else if (draft.random.bernoulli(0.4)) {
    job.probe = draft.random.bernoulli(0.3) ? 1.0 : draft.random.between(0.05, 0.8);
    draft.describe("{:.0f} % of stragglers finish", 100 * job.probe);
  }
}

void draw_live(HuntDraft& draft) {
  if (!draft.random.bernoulli(0.5)) return;
  draft.hunt.live = make_policy(draft.hunt.policy, {.live = true}).ok();
  if (draft.hunt.live) draft.describe("decisions are revised within steps");
}

void draw_partial_pull(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  if (random.bernoulli(0.25)) {
    const Stall stall{.shard = random.number(0, job.shards - 1),
                      .when = draft.some_trigger(),
                      .length = random.time(0.1, 8.0)};
    draft.scenario().stalls.push_back(stall);
    draft.describe("shard {} hangs for {:.2f} s {}", stall.shard, seconds(stall.length),
                   HuntDraft::words(stall.when));
  }
  if (job.asynchronous) return;
  if (random.bernoulli(0.3)) {
    job.push_grace = random.time(0.001, 0.5);
    draft.describe("push grace of {:.3f} s", seconds(job.push_grace));
  }
  if (!random.bernoulli(0.4)) return;
  job.learning.deterministic = false;
  job.pull.choose = random.bernoulli(0.2);
  job.pull.warmup = random.number(0, 3);
  if (!job.pull.choose) job.pull.share = random.between(0.1, 0.99);
  if (random.bernoulli(0.5)) job.pull.grace = random.time(0.001, 0.5);
  draft.describe(
      "workers continue with {} of the blocks, after {:.3f} s",
      job.pull.choose ? std::string("some") : fmt::format("{:.0f} %", 100 * job.pull.share),
      seconds(job.pull.grace));
}

void draw_balance(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  if (!random.bernoulli(0.15) || job.asynchronous || !draft.hunt.settings.batches.empty()) return;
  draft.hunt.settings.batch = job.batch = random.number(4, 12);
  job.full_samples = uint64_t{job.batch} * job.workers;
  job.balance = BalanceSettings{.least = random.between(0.2, 0.5),
                                .most = random.between(1.5, 3.0),
                                .warmup = random.number(1, 3),
                                .seed = draft.hunt.settings.seed};
  draft.describe("batches are balanced by speed");
}

void draw_guard(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  if (!random.bernoulli(0.2) || job.workers < kGuardWorkersMin || job.asynchronous || job.balance ||
      job.pull.is_partial())
    return;
  job.learning.guard = random.bernoulli(0.5) ? GuardRule::kNorm : GuardRule::kRefuse;
  draft.describe("gradients with too large a norm are {}",
                 job.learning.guard == GuardRule::kNorm ? "clipped" : "refused");
  for (uint32_t count = random.number(0, (job.workers - 1) / 2); count > 0; --count) {
    constexpr std::array kFactors = {-30.0, 3.0, 300.0, 3000.0};
    const ByzantineFault fault{.worker = draft.some_worker(),
                               .factor = kFactors[random.number(0, kFactors.size() - 1)],
                               .step = random.number(0, static_cast<uint32_t>(job.steps) - 1)};
    draft.scenario().byzantine_faults.push_back(fault);
    draft.describe("worker {}'s gradients are multiplied by {} from step {} on", fault.worker,
                   fault.factor, *fault.step);
  }
}

void draw_scripts(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  if (!random.bernoulli(0.2) || job.asynchronous || job.balance) return;
  job.workers_bring_model = true;
  job.evaluator = false;
  SimulatedScripts scripts{.first_rate = HuntCase::kLearningRate,
                           .rate = random.between(0.02, 0.2),
                           .changes_at = random.number(0, static_cast<uint32_t>(job.steps)),
                           .pulls_ahead = !job.pull.is_partial() && random.bernoulli(0.5)};
  draft.hunt.settings.scripts = scripts;
  draft.describe("workers bring their model{}; from step {} on their learning rate is {:.3f}",
                 scripts.pulls_ahead ? " and pull ahead" : "", scripts.changes_at, scripts.rate);
  for (uint32_t count = random.bernoulli(0.4) ? random.number(1, job.workers) : 0; count > 0;
       --count) {
    const Leave leave{.worker = draft.some_worker(),
                      .before = random.number(1, static_cast<uint32_t>(job.steps)),
                      .fails = random.bernoulli(0.3)};
    draft.scenario().leaves.push_back(leave);
    draft.describe("worker {} {} before step {}", leave.worker,
                   leave.fails ? "raises an exception" : "leaves", leave.before);
  }
}

void draw_momentum(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  RandomDraws& random = draft.random;
  // The exact value of a clipped gradient is not known, and momentum would add up the error.
  if (!random.bernoulli(0.3) || job.learning.guard != GuardRule::kOff) return;
  job.learning.optimizer.kind = OptimizerKind::kMomentum;
  // A larger momentum makes a run with stale gradients diverge.
  const bool stale = job.asynchronous || job.pull.is_partial();
  job.learning.optimizer.momentum = stale ? random.between(0.1, 0.25) : random.between(0.3, 0.9);
  draft.describe("momentum {:.2f}", job.learning.optimizer.momentum);
}

}  // namespace drover

#include "sim/hunt_features.h"

#include <array>

#include "policy/catalogue.h"

namespace drover {

void draw_stragglers(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  job.seed = draft.hunt.settings.seed;
  if (draft.dice.chance(0.2)) {
    job.stragglers = StragglerRule::kFinish;
    draft.describe("stragglers finish");
  } else if (draft.dice.chance(0.4)) {
    job.probe = draft.dice.chance(0.3) ? 1.0 : draft.dice.between(0.05, 0.8);
    draft.describe("{:.0f} % of stragglers finish", 100 * job.probe);
  }
}

void draw_live(HuntDraft& draft) {
  if (!draft.dice.chance(0.5)) return;
  draft.hunt.live = make_policy(draft.hunt.policy, {.live = true}).ok();
  if (draft.hunt.live) draft.describe("decided again inside steps");
}

void draw_weak(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  Dice& dice = draft.dice;
  if (dice.chance(0.25)) {
    const Stall stall{.shard = dice.number(0, job.shards - 1),
                      .when = draft.some_moment(),
                      .length = dice.time(0.1, 8.0)};
    draft.scenario().stalls.push_back(stall);
    draft.describe("shard {} hangs for {:.2f} s {}", stall.shard, seconds(stall.length),
                   HuntDraft::words(stall.when));
  }
  if (job.asynchronous) return;
  if (dice.chance(0.3)) {
    job.push_grace = dice.time(0.001, 0.5);
    draft.describe("blocks wait {:.3f} s longer", seconds(job.push_grace));
  }
  if (!dice.chance(0.4)) return;
  job.learning.deterministic = false;
  job.pull.choose = dice.chance(0.2);
  job.pull.warmup = dice.number(0, 3);
  if (!job.pull.choose) job.pull.share = dice.between(0.1, 0.99);
  if (dice.chance(0.5)) job.pull.grace = dice.time(0.001, 0.5);
  draft.describe(
      "workers go on with {} of the blocks, after {:.3f} s",
      job.pull.choose ? std::string("some") : fmt::format("{:.0f} %", 100 * job.pull.share),
      seconds(job.pull.grace));
}

void draw_balance(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  Dice& dice = draft.dice;
  if (!dice.chance(0.15) || job.asynchronous || !draft.hunt.settings.batches.empty()) return;
  draft.hunt.settings.batch = job.batch = dice.number(4, 12);
  job.full_samples = uint64_t{job.batch} * job.workers;
  job.balance = BalanceSettings{.least = dice.between(0.2, 0.5),
                                .most = dice.between(1.5, 3.0),
                                .warmup = dice.number(1, 3),
                                .seed = draft.hunt.settings.seed};
  draft.describe("samples are dealt by speed");
}

void draw_guard(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  Dice& dice = draft.dice;
  if (!dice.chance(0.2) || job.workers < kGuardWorkersMin || job.asynchronous || job.balance ||
      job.pull.is_partial())
    return;
  job.learning.guard = dice.chance(0.5) ? GuardRule::kNorm : GuardRule::kRefuse;
  draft.describe("gradients that are too long are {}",
                 job.learning.guard == GuardRule::kNorm ? "clipped" : "refused");
  for (uint32_t count = dice.number(0, (job.workers - 1) / 2); count > 0; --count) {
    constexpr std::array kFactors = {-30.0, 3.0, 300.0, 3000.0};
    const Lie lie{.worker = draft.some_worker(),
                  .factor = kFactors[dice.number(0, kFactors.size() - 1)],
                  .step = dice.number(0, static_cast<uint32_t>(job.steps) - 1)};
    draft.scenario().lies.push_back(lie);
    draft.describe("worker {}'s gradients are {} times what they should be from step {} on",
                   lie.worker, lie.factor, *lie.step);
  }
}

void draw_scripts(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  Dice& dice = draft.dice;
  if (!dice.chance(0.2) || job.asynchronous || job.balance) return;
  job.workers_bring_model = true;
  job.evaluator = false;
  SimulatedScripts scripts{.first_rate = HuntCase::kLearningRate,
                           .rate = dice.between(0.02, 0.2),
                           .changes_at = dice.number(0, static_cast<uint32_t>(job.steps)),
                           .pulls_ahead = !job.pull.is_partial() && dice.chance(0.5)};
  draft.hunt.settings.scripts = scripts;
  draft.describe("workers bring their model{}; from step {} on their learning rate is {:.3f}",
                 scripts.pulls_ahead ? " and pull ahead" : "", scripts.changes_at, scripts.rate);
  for (uint32_t count = dice.chance(0.4) ? dice.number(1, job.workers) : 0; count > 0; --count) {
    const Leave leave{.worker = draft.some_worker(),
                      .before = dice.number(1, static_cast<uint32_t>(job.steps)),
                      .fails = dice.chance(0.3)};
    draft.scenario().leaves.push_back(leave);
    draft.describe("worker {} {} before step {}", leave.worker,
                   leave.fails ? "raises an exception" : "leaves", leave.before);
  }
}

void draw_momentum(HuntDraft& draft) {
  CoordinatorSettings& job = draft.job();
  Dice& dice = draft.dice;
  // What was clipped is not known exactly, and momentum would add that up.
  if (!dice.chance(0.3) || job.learning.guard != GuardRule::kOff) return;
  job.learning.optimizer.kind = OptimizerKind::kMomentum;
  // More of it makes a run diverge whose gradients are of old parameters.
  const bool stale = job.asynchronous || job.pull.is_partial();
  job.learning.optimizer.momentum = stale ? dice.between(0.1, 0.25) : dice.between(0.3, 0.9);
  draft.describe("with a momentum of {:.2f}", job.learning.optimizer.momentum);
}

}  // namespace drover

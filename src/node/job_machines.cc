#include "node/job_machines.h"

#include <algorithm>

namespace drover {

namespace {

std::optional<BalanceSettings> balance_of(const Job& job) {
  if (!job.balance) return std::nullopt;
  return BalanceSettings{.least = job.balance_least,
                         .most = job.balance_most,
                         .warmup = job.policy_warmup,
                         .seed = job.task.seed};
}

}  // namespace

Result<CoordinatorSettings> coordinator_settings(const Job& job) {
  const auto free_running = free_running_of(job.policy);
  if (!free_running) return free_running.error();
  return CoordinatorSettings{
      .workers = std::max(job.workers, job.workers_max),
      .workers_at_start = job.workers,
      .shards = job.shards,
      .steps = job.steps,
      .deterministic = job.deterministic,
      .evaluator = true,
      .evaluate_every = job.evaluate_every,
      .stop_at = job.stop_at,
      .optimizer = job.optimizer,
      .schedule = job.schedule,
      .workers_bring_model = false,
      .told = {.wire_dtype = job.wire_dtype, .slow = job.slow},
      .full_samples = uint64_t{job.workers} * job.batch,
      .batch = job.batch,
      .limits = {.at_least = job.min_contributors,
                 .max_wait = job.max_wait > Duration::zero() ? seconds(job.max_wait) : kNoTimeLimit,
                 .min_inclusion = job.min_inclusion,
                 .decide_every = job.decide_every},
      .balance = balance_of(job),
      .stragglers = job.stragglers,
      .probe = job.probe,
      .seed = job.task.seed,
      .free_running = free_running.value(),
      .pull = {.share = job.pull == kPullAuto ? 1.0 : job.pull,
               .choose = job.pull == kPullAuto,
               .warmup = job.policy_warmup,
               .grace = job.pull_grace},
      .push_grace = job.push_grace,
      .guard = job.guard,
      .guard_factor = job.guard_factor,
      .workers_indispensable = job.transport == Transport::kMpi};
}

Result<std::unique_ptr<Policy>> policy_of(const Job& job, const Foresight& foresight,
                                          const FitterMaker& fitter) {
  const auto free_running = free_running_of(job.policy);
  if (!free_running) return free_running.error();
  if (free_running.value()) return std::unique_ptr<Policy>();
  return make_policy(job.policy, {.objective = job.objective,
                                  .warmup = job.policy_warmup,
                                  .seed = job.task.seed,
                                  .live = job.live,
                                  .foresight = foresight,
                                  .fitter = fitter});
}

}  // namespace drover

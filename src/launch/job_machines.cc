#include "launch/job_machines.h"

#include <algorithm>

namespace drover {

namespace {

std::optional<BalanceSettings> balance_of(const Job& job) {
  if (!job.waiting.balance) return std::nullopt;
  return BalanceSettings{.least = job.waiting.balance_least,
                         .most = job.waiting.balance_most,
                         .warmup = job.waiting.policy_warmup,
                         .seed = job.task.seed};
}

}  // namespace

Result<CoordinatorSettings> coordinator_settings(const Job& job) {
  const auto asynchronous = asynchronous_of(job.waiting.policy);
  if (!asynchronous) return asynchronous.error();
  return CoordinatorSettings{
      .workers = std::max(job.cluster.workers, job.cluster.workers_max),
      .workers_at_start = job.cluster.workers,
      .shards = job.cluster.shards,
      .steps = job.steps,
      .evaluator = true,
      .evaluate_every = job.record.evaluate_every,
      .stop_at = job.record.stop_at,
      .learning = job.learning,
      .workers_bring_model = false,
      .worker_options = {.wire_dtype = job.cluster.wire_dtype, .slow = job.cluster.slow},
      .full_samples = uint64_t{job.cluster.workers} * job.batch,
      .batch = job.batch,
      .limits = {.at_least = job.waiting.min_contributors,
                 .max_wait = job.waiting.max_wait > Duration::zero() ? seconds(job.waiting.max_wait)
                                                                     : kNoTimeLimit,
                 .min_inclusion = job.waiting.min_inclusion},
      .balance = balance_of(job),
      .stragglers = job.waiting.stragglers,
      .probe = job.waiting.probe,
      .seed = job.task.seed,
      .asynchronous = asynchronous.value(),
      .pull = {.share = job.waiting.pull == kPullAuto ? 1.0 : job.waiting.pull,
               .choose = job.waiting.pull == kPullAuto,
               .warmup = job.waiting.policy_warmup,
               .grace = job.waiting.pull_grace},
      .push_grace = job.waiting.push_grace,
      .workers_indispensable = job.cluster.transport == Transport::kMpi};
}

Result<std::unique_ptr<Policy>> policy_of(const Job& job, const Foresight& foresight,
                                          const FitterMaker& fitter) {
  const auto asynchronous = asynchronous_of(job.waiting.policy);
  if (!asynchronous) return asynchronous.error();
  if (asynchronous.value()) return std::unique_ptr<Policy>();
  return make_policy(job.waiting.policy, {.objective = job.waiting.objective,
                                          .warmup = job.waiting.policy_warmup,
                                          .seed = job.task.seed,
                                          .live = job.waiting.live,
                                          .foresight = foresight,
                                          .fitter = fitter});
}

}  // namespace drover

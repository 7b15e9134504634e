#include "coordinator/start_messages.h"

#include <utility>

namespace drover {

Plan plan_of(const CoordinatorSettings& settings, const LearningRules& rules,
             const BlockMap& blocks) {
  const auto& resume = settings.resume;
  return {.workers = settings.workers,
          .steps = settings.steps,
          .evaluate_every = settings.evaluate_every,
          .learning = rules,
          .full_samples = settings.full_samples,
          .asynchronous = settings.asynchronous.has_value(),
          .staleness = settings.asynchronous.value_or(Asynchronous{}).staleness,
          .partial_pull = settings.pull.is_partial(),
          .push_grace = settings.push_grace,
          .first_step = resume ? resume->step : 0,
          .resume_from = resume ? resume->folder : "",
          .kept = resume ? resume->kept : std::nullopt,
          .standby = settings.standby,
          .incarnation = settings.incarnation,
          .checkpoint_every = settings.checkpoint_every,
          .checkpoint_dir = settings.checkpoint_dir,
          .tensors = blocks.tensors(),
          .blocks = blocks.plan()};
}

Welcome welcome_of(const CoordinatorSettings& settings, const BlockMap& blocks, double pull_share,
                   std::vector<std::string> shards) {
  return {.shards = std::move(shards),
          .blocks = blocks.plan(),
          .steps = settings.steps,
          .evaluate_every = settings.evaluate_every,
          .asynchronous = settings.asynchronous.has_value(),
          .workers = settings.workers,
          .batch = settings.batch,
          .seed = settings.seed,
          .wire_dtype = settings.worker_options.wire_dtype,
          .slow = settings.worker_options.slow,
          .partial_pull = settings.pull.is_partial(),
          .pull_share = pull_share,
          .pull_grace = settings.pull.grace,
          .first_step = settings.resume ? settings.resume->step : 0};
}

}  // namespace drover

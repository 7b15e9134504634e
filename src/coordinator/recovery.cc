#include "coordinator/recovery.h"

namespace drover {

RestartPoint restart_point(const CoordinatorSettings& settings, bool checkpoint_kept) {
  if (checkpoint_kept || (settings.resume && !settings.resume->kept))
    return RestartPoint::kCheckpoint;
  if (settings.checkpoint_dir.empty()) return RestartPoint::kBeginning;
  return settings.resume ? RestartPoint::kCheckpointIfAny : RestartPoint::kBeginningNoneYet;
}

// The last step is always repeated: the evaluation of its parameters and their digest are reported
// when it closes.
std::optional<ResumeFrom> resume_from_memory(const CoordinatorSettings& settings,
                                             const ModelAgreement& model, const BlockMap* blocks,
                                             const StepClock* clock) {
  if (!settings.standby) return std::nullopt;
  const auto& resume = settings.resume;
  const bool was_kept = resume && resume->kept;
  if (blocks == nullptr || clock == nullptr) return was_kept ? resume : std::nullopt;
  const Version version = clock->at_end() ? clock->step() - 1 : clock->step();
  const bool is_new = version > (resume ? resume->step : 0);
  if (!is_new && !was_kept) return std::nullopt;
  ResumeFrom from{.step = version,
                  .folder = {},
                  .tensors = blocks->tensors(),
                  .settings = model.settings(),
                  .noise = clock->at_end() ? clock->noise_before() : clock->noise(),
                  .kept = is_new ? KeptVersion{version, settings.incarnation} : resume->kept};
  for (const auto& [shard, count] : blocks->on_shards()) from.keepers.insert(shard);
  return from;
}

}  // namespace drover

// Where a run can continue after a restart.
#pragma once

#include <optional>

#include "coordinator/block_map.h"
#include "coordinator/coordinator_settings.h"
#include "coordinator/model_agreement.h"
#include "coordinator/step_clock.h"
#include "core/event.h"

namespace drover {

// Without what is kept in memory. `checkpoint_kept`: by this incarnation of the coordinator.
RestartPoint restart_point(const CoordinatorSettings& settings, bool checkpoint_kept);

// From what shards and standbys keep in memory of the steps that all shards have closed; nothing if
// they keep nothing. `blocks` and `clock` are null as long as the blocks are not planned.
std::optional<ResumeFrom> resume_from_memory(const CoordinatorSettings& settings,
                                             const ModelAgreement& model, const BlockMap* blocks,
                                             const StepClock* clock);

}  // namespace drover

// The state that a run can continue from after a restart.
#pragma once

#include <optional>

#include "coordinator/block_map.h"
#include "coordinator/coordinator_settings.h"
#include "coordinator/model_agreement.h"
#include "coordinator/step_clock.h"
#include "core/event.h"

namespace drover {

// Where to continue if no state is kept in memory. `checkpoint_kept`: whether this incarnation of
// the coordinator has kept a checkpoint.
RestartPoint restart_point(const CoordinatorSettings& settings, bool checkpoint_kept);

// The newest state that shards and standbys keep in memory, of the steps that all shards have
// closed. Absent if they keep none. `blocks` and `clock` are null until the blocks are planned.
std::optional<ResumeFrom> resume_from_memory(const CoordinatorSettings& settings,
                                             const ModelAgreement& model, const BlockMap* blocks,
                                             const StepClock* clock);

}  // namespace drover

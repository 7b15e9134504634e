// What a coordinator tells processes when they can begin: the plan of a run, and a welcome to it.
#pragma once

#include <string>
#include <vector>

#include "coordinator/block_map.h"
#include "coordinator/coordinator_settings.h"
#include "core/learning_rules.h"
#include "wire/control.h"

namespace drover {

// To shards.
Plan plan_of(const CoordinatorSettings& settings, const LearningRules& rules,
             const BlockMap& blocks);

// To workers and the evaluator. `pull_share`: of the blocks, that workers wait for; `shards`: where
// each is reached.
Welcome welcome_of(const CoordinatorSettings& settings, const BlockMap& blocks, double pull_share,
                   std::vector<std::string> shards);

}  // namespace drover

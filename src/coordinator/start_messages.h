// The messages with which a coordinator starts processes: a Plan for shards, a Welcome for workers
// and the evaluator.
#pragma once

#include <string>
#include <vector>

#include "coordinator/block_map.h"
#include "coordinator/coordinator_settings.h"
#include "core/learning_rules.h"
#include "wire/control.h"

namespace drover {

Plan plan_of(const CoordinatorSettings& settings, const LearningRules& rules,
             const BlockMap& blocks);

// `pull_share`: the share of the blocks that workers wait for. `shards`: the address of each shard.
Welcome welcome_of(const CoordinatorSettings& settings, const BlockMap& blocks, double pull_share,
                   std::vector<std::string> shards);

}  // namespace drover

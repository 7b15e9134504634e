// What a run that continues has of a shard's blocks: on the disk, or in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/result.h"
#include "shard/kept_parts.h"
#include "wire/control.h"

namespace drover {

// Nothing: the run begins.
using SavedBlocks = std::optional<std::vector<SavedBlock>>;

// Of a checkpoint (Plan::resume_from). The error says which file, and what is wrong with it.
Result<SavedBlocks> read_saved(const Plan& plan, ShardId shard);

// Of a version that `keeper` has kept in memory. The error: that is not what the plan needs.
// REQUIRES: plan.kept.
Result<SavedBlocks> kept_blocks(const Plan& plan, ShardId shard, const KeptParts& kept,
                                const std::string& keeper);

}  // namespace drover

// A shard's blocks that a resumed or restarted run continues from: on the disk, or in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/result.h"
#include "shard/kept_parts.h"
#include "wire/control.h"

namespace drover {

// Absent: the run starts from initial parameters.
using SavedBlocks = std::optional<std::vector<SavedBlock>>;

// The blocks of a checkpoint (Plan::resume_from). The error says which file, and what is wrong with
// it.
Result<SavedBlocks> read_saved(const Plan& plan, ShardId shard);

// The blocks of version plan.kept that process `keeper` has in memory. An error if they are not the
// shard's blocks. REQUIRES: plan.kept.
Result<SavedBlocks> kept_blocks(const Plan& plan, ShardId shard, const KeptParts& kept,
                                const std::string& keeper);

}  // namespace drover

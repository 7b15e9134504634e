// check_blocks(): whether blocks that somebody else has planned lie where this layout has tensors.
#pragma once

#include "core/layout.h"
#include "core/result.h"

namespace drover {

// An error says that one does not. Whoever writes to a buffer of this layout what comes for a block
// has asked before.
Status check_blocks(const BlockPlan& plan, const Layout& layout);

}  // namespace drover

// check_blocks(): whether a block plan that was received from a peer fits a layout.
#pragma once

#include "core/layout.h"
#include "core/result.h"

namespace drover {

// An error if a block is outside the layout's tensors. To be called before data of such blocks is
// written to a buffer of this layout.
Status check_blocks(const BlockPlan& plan, const Layout& layout);

}  // namespace drover

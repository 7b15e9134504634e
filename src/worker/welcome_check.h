// check_welcome(): whether a coordinator's Welcome matches the member's model.
#pragma once

#include <optional>

#include "core/layout.h"
#include "core/result.h"
#include "wire/control.h"

namespace drover {

// An error means that the coordinator violates the protocol: a block is outside the member's
// buffers or on a shard without an address, or the run does not have this worker. `worker` is
// absent for an evaluator.
Status check_welcome(const Welcome& welcome, const Layout& layout, std::optional<WorkerId> worker);

}  // namespace drover

// check_welcome(): whether what a coordinator says of a run fits what its member has.
#pragma once

#include <optional>

#include "core/layout.h"
#include "core/result.h"
#include "wire/control.h"

namespace drover {

// An error means that the coordinator breaks the protocol: blocks would lie outside the member's
// buffers, or on shards that it is told no address of; or the run would not have this worker.
// `worker`: absent for an evaluator.
Status check_welcome(const Welcome& welcome, const Layout& layout, std::optional<WorkerId> worker);

}  // namespace drover

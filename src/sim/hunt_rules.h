// Derives from a hunt case what must hold in its run.
#pragma once

#include "sim/hunt_case.h"
#include "sim/referee.h"

namespace drover {

// REQUIRES: the case outlives the result.
RefereeSettings rules_for(const HuntCase& hunt);

// Whether its run may restart.
bool is_interrupted(const HuntCase& hunt);
// Whether the final parameters must not depend on the order of messages: all workers are in every
// step, and sums are deterministic.
bool is_order_independent(const HuntCase& hunt);

}  // namespace drover

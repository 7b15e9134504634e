// What must hold in a hunt case, derived from what it is.
#pragma once

#include "sim/hunt_case.h"
#include "sim/referee.h"

namespace drover {

// The case outlives these.
RefereeSettings rules_for(const HuntCase& hunt);

// Whether its run may have to restart.
bool is_interrupted(const HuntCase& hunt);
// Whether its parameters may depend on nothing but the gradients: all workers are in every step.
bool is_calm(const HuntCase& hunt);

}  // namespace drover

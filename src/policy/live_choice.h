// live_choice(): the choice that a review inside a step comes to, with its reason.
#pragma once

#include <string_view>

#include "policy/live_step.h"
#include "policy/policy.h"

namespace drover {

Choice live_choice(std::string_view policy, const LiveStep::Revision& revision,
                   const StepProgress& progress, uint32_t alive);

}  // namespace drover

// Translates a job into settings of the state machines, for real and for simulated runs.
#pragma once

#include <memory>

#include "coordinator/coordinator.h"
#include "core/result.h"
#include "job/job.h"
#include "policy/catalogue.h"

namespace drover {

// An error if the job's policy is invalid.
Result<CoordinatorSettings> coordinator_settings(const Job& job);

// Null in asynchronous training. `foresight` is for simulations; without it the oracle is refused.
Result<std::unique_ptr<Policy>> policy_of(const Job& job, const Foresight& foresight,
                                          const FitterMaker& fitter);

}  // namespace drover

// What a job means for the state machines: the same for real processes and for simulated ones.
#pragma once

#include <memory>

#include "coordinator/coordinator.h"
#include "core/result.h"
#include "job/job.h"
#include "policy/catalogue.h"

namespace drover {

// An error if the job's policy cannot be understood.
Result<CoordinatorSettings> coordinator_settings(const Job& job);

// Null if workers run freely. `foresight` is for simulations; without it the oracle is refused.
Result<std::unique_ptr<Policy>> policy_of(const Job& job, const Foresight& foresight,
                                          const FitterMaker& fitter);

}  // namespace drover

// Whether the settings of a job go together, and what follows from them.
#pragma once

#include "core/result.h"
#include "job/job.h"

namespace drover {

// Sets what the user does not say but follows from the rest: where a cosine schedule ends.
void finish(Job& job);

// Whether a run can be started with this job: every setting by itself, and all of them together.
// The error names key and flag.
Status validate(const Job& job);

}  // namespace drover

// Validation of a job, and settings that follow from others.
#pragma once

#include "core/result.h"
#include "job/job.h"

namespace drover {

// Sets values that follow from others: the end of a cosine schedule.
void finish(Job& job);

// Whether a run can start with this job. Checks every setting by itself and their combinations. The
// error names key and flag.
Status validate(const Job& job);

}  // namespace drover

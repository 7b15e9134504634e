// StepSummary: a step as it is recorded, computed once all shards have closed it.
#pragma once

#include <vector>

#include "coordinator/open_step.h"
#include "core/ids.h"
#include "core/run_record.h"
#include "wire/control.h"

namespace drover {

struct StepSummary {
  StepRecord step;
  // By worker: one for each worker that was alive when the step opened. Asynchronous: one for each
  // worker with a used gradient.
  std::vector<ArrivalRecord> arrivals;
  std::vector<StepClosed::Refused> refused;
  std::vector<StepClosed::Outlier> outliers;  // by worker, over all shards
  double noise_scale_at_open = 0.0;           // 0: unknown
};

// Pure. `step.late` stays 0: late gradients belong to no step (StragglerBook).
// REQUIRES: count_outcomes(mode, open) was called after the last shard closed the step.
StepSummary summarise(Step step, StepMode mode, const OpenStep& open);

}  // namespace drover

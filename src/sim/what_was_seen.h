// What a step shows of everybody's run-times: the one door through which a replay or a simulation,
// which know them all, tells a policy about them.
#pragma once

#include <span>

#include "core/step_times.h"
#include "policy/close_rule.h"

namespace drover {

// Who was there when the step closed has a run-time; of whoever was not, only that it takes longer
// than the step did is known. `run_times` is by worker; NaN: it took no part. Whatever is in
// `run_times` beyond the close has no influence on the result.
StepTimes what_was_seen(Step step, std::span<const double> run_times, const StepClose& close);

}  // namespace drover

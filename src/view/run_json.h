// The JSON that the page receives of a run (format 1). Unknown numbers are null, times are seconds.
#pragma once

#include <string>

#include "view/run_snapshot.h"
#include "view/step_detail.h"

namespace drover {

inline constexpr int kPageFormat = 1;

// The complete state, in one line.
std::string all_json(const RunSnapshot& snapshot);

// The parts of the state that differ; empty if none does. `steps` and `heat` contain the buckets
// and columns from the first different one, whose index is `from`. They contain all of them if the
// number of steps per bucket differs.
std::string update_json(const RunSnapshot& before, const RunSnapshot& now);

std::string step_json(const StepDetail& detail);

std::string error_json(const std::string& message);

}  // namespace drover

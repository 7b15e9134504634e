// What the page is told of a run, as JSON (format 1): numbers that are not known are null, times
// are seconds.
#pragma once

#include <string>

#include "view/run_snapshot.h"
#include "view/step_detail.h"

namespace drover {

inline constexpr int kPageFormat = 1;

// Everything. One line.
std::string all_json(const RunSnapshot& snapshot);

// Only the parts that differ. Of the buckets in `steps` and the columns in `heat`, those from the
// first on that differs, and its place as `from`; all of them if they hold another number of steps
// than before. Empty: nothing differs.
std::string update_json(const RunSnapshot& before, const RunSnapshot& now);

std::string step_json(const StepDetail& detail);

std::string error_json(const std::string& message);

}  // namespace drover

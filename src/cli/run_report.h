// Reports of commands that make a run: errors, the result, and how to resume it.
#pragma once

#include <string>

#include "core/result.h"
#include "launch/launcher.h"

namespace drover {

// The exit status for an invalid command line.
inline constexpr int kExitUsage = 2;

// Prints the error on standard error. Returns the exit status.
int fail(const Error& error, int status = kExitFailed);

// A line that says how to resume an incomplete run from the folder `checkpoints`; empty if there is
// no complete checkpoint.
std::string resume_hint(const std::string& checkpoints);

// Prints the summary of a run from its run file, as `drover runs` does. Returns the exit status.
int report_run(const std::string& run_file, bool json);

}  // namespace drover

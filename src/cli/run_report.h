// What commands share that make a run: how its end and errors are reported.
#pragma once

#include <string>

#include "core/result.h"
#include "launch/launcher.h"

namespace drover {

// The exit status for a command line that cannot be understood.
inline constexpr int kExitUsage = 2;

// Tells the trouble on standard error; the exit status for it.
int fail(const Error& error, int status = kExitFailed);

// A line that says how a run that has not completed goes on; empty if there is no checkpoint.
std::string how_to_go_on(const std::string& checkpoints);

// What became of the run, from its own record: the same words as `drover runs` prints. Returns the
// exit status.
int report_run(const std::string& run_file, bool json);

}  // namespace drover

// The scenario that `drover simulate` was told on its command line: the file, and flags that win
// over it.
#pragma once

#include <string>

#include "core/result.h"
#include "job/given_flags.h"
#include "sim/scenario_file.h"

namespace drover {

// Finished and valid; refuses flags that mean nothing without processes.
Result<ScenarioFile> scenario_of(const std::string& path, const GivenFlags& flags);

}  // namespace drover

// The scenario that `drover simulate` was told on its command line: the file, and flags that win
// over it.
#pragma once

#include <string>

#include "cli/scenario_file.h"
#include "cli/train_options.h"
#include "core/result.h"

namespace drover {

// Finished and valid; refuses flags that mean nothing without processes.
Result<ScenarioFile> scenario_of(const std::string& path, const GivenFlags& flags);

}  // namespace drover

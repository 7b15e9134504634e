// The scenario of `drover simulate`: the scenario file, overridden by flags of the command line.
#pragma once

#include <string>

#include "core/result.h"
#include "job/given_flags.h"
#include "sim/scenario_file.h"

namespace drover {

// The result is finished and valid. Refuses flags that only apply to real processes.
Result<ScenarioFile> scenario_of(const std::string& path, const GivenFlags& flags);

}  // namespace drover

// Reads a trace from a run file: the run-times that became known, in time or late.
#pragma once

#include <string>

#include "core/result.h"
#include "sim/trace.h"

namespace drover {

// A run-time of which only a lower bound is known is left out: to replay it as if it were true
// would make slow workers fast. How many there were is a warning of the trace.
Result<Trace> read_run_trace(const std::string& path);

}  // namespace drover

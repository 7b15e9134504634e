// Reads a trace from a run file: the run-times that became known, in time or late.
#pragma once

#include <string>

#include "core/result.h"
#include "store/run_reader.h"
#include "store/trace.h"

namespace drover {

// A run-time of which only a lower bound is known is left out: to replay it as if it were true
// would make slow workers fast. How many there were is a warning of the trace.
Result<Trace> read_run_trace(const std::string& path);

// Of a run with async or ssp, where a step is a round of gradients that began at different moments:
// what the user should know of that; else "".
Result<std::string> warning_of_rounds(const RunReader& reader);

}  // namespace drover

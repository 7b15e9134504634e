// Reads a trace from a run file: the known run-times, in time or late.
#pragma once

#include <string>

#include "core/result.h"
#include "store/run_reader.h"
#include "store/trace.h"

namespace drover {

// Omits run-times with only a lower bound: a replay would take the bound for the run-time, and slow
// workers would look fast. A warning of the trace has their number.
Result<Trace> read_run_trace(const std::string& path);

// A warning for asynchronous runs, in which a step is a round of gradients that began at different
// times; "" for other runs.
Result<std::string> warning_of_rounds(const RunReader& reader);

}  // namespace drover

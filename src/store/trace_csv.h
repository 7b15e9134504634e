// Reads a trace from CSV: a header `step,w0,w1,...`, then a line for every step; blank means not
// recorded.
#pragma once

#include <string>

#include "core/result.h"
#include "store/trace.h"

namespace drover {

// Reads line by line, so that the text is never in memory as a whole.
Result<Trace> read_csv_trace(const std::string& path);

}  // namespace drover

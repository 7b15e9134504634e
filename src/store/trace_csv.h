// Reads a trace from CSV: a header `step,w0,w1,...`, then one line per step. Blank: not recorded.
#pragma once

#include <string>

#include "core/result.h"
#include "store/trace.h"

namespace drover {

// Reads line by line, so that it needs little memory for text.
Result<Trace> read_csv_trace(const std::string& path);

}  // namespace drover

// The report of `drover replay`: a table for people, lines of JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "sim/replay.h"

namespace drover {

struct ReplayRow {
  std::string policy;  // as given on the command line
  ReplayResult result;
};

// Facts that are the same for all rows.
struct ReplayFrame {
  std::string trace;
  std::string objective;
  Step warmup = 0;
};

// One JSON object in one line, without '\n'. Keys are stable; later versions may add some.
std::string to_json_line(const ReplayFrame& frame, const ReplayRow& row);

// A line that describes the trace, then an aligned table of the rows in their order.
// REQUIRES: rows is not empty.
std::string to_text(const ReplayFrame& frame, const std::vector<ReplayRow>& rows);

}  // namespace drover

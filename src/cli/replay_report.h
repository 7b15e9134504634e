// What `drover replay` says of its policies: a table for people, lines of JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "sim/replay.h"

namespace drover {

struct ReplayRow {
  std::string policy;  // as it was given
  ReplayResult result;
};

// What all rows have in common.
struct ReplayFrame {
  std::string trace;
  std::string objective;
  Step warmup = 0;
};

// One JSON object in one line, without '\n'. Keys stay; new ones may come.
std::string to_json_line(const ReplayFrame& frame, const ReplayRow& row);

// Aligned, in the order given; what was replayed comes first. REQUIRES: rows is not empty.
std::string to_text(const ReplayFrame& frame, const std::vector<ReplayRow>& rows);

}  // namespace drover

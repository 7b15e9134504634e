// RunHeader: what a run file says of a run before its first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"

namespace drover {

struct RunHeader {
  RunId run_id = 0;
  std::string started;  // ISO 8601, UTC: "2026-07-01T12:00:00Z"
  std::string command;  // the command line as it was typed
  std::string job;      // the whole job as TOML, so that the run can be repeated from its file
  // Both keep no order: they are read back sorted by key. A key given twice keeps the last value.
  std::vector<std::pair<std::string, std::string>> settings;     // the job, flat: "workers" -> "4"
  std::vector<std::pair<std::string, std::string>> environment;  // "cpu" -> "AMD EPYC 7B13"

  bool operator==(const RunHeader&) const = default;
};

}  // namespace drover

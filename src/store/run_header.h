// RunHeader: the part of a run file that is written before the first step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"

namespace drover {

struct RunHeader {
  RunId run_id = 0;
  std::string started;  // ISO 8601, UTC: "2026-07-01T12:00:00Z"
  std::string command;  // the command line
  std::string job;      // the whole job as TOML, so that the run can be repeated from its file
  // Unordered: both are read back sorted by key. If a key occurs twice, the last value is kept.
  std::vector<std::pair<std::string, std::string>>
      settings;  // the settings of the job: "workers" -> "4"
  std::vector<std::pair<std::string, std::string>> environment;  // "cpu" -> "AMD EPYC 7B13"

  bool operator==(const RunHeader&) const = default;
};

}  // namespace drover

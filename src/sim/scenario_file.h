// Scenario files: TOML files that describe a simulated cluster, its faults and the job that it
// trains. docs/scenarios.md lists the keys. Errors name the file, line, column and key, and for an
// unknown key the nearest known one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "job/job.h"
#include "sim/scenario.h"

namespace drover {

struct ScenarioFile {
  std::string about;  // one line for people
  Job job;            // finished, but not yet validated
  Scenario scenario;
  std::optional<uint32_t> even_nodes;  // number of nodes that share the workers evenly
  std::string text;                    // the file as it was read
};

Result<ScenarioFile> read_scenario_file(const std::string& path);

// Parses text. `name` is the file name in errors; paths of traces are relative to its folder.
Result<ScenarioFile> parse_scenario(std::string_view text, const std::string& name);

// Distributes the workers over the nodes again, after the job's number of workers has changed.
void place_workers(ScenarioFile& file);

// Checks the scenario against the job: every worker, node and shard that it names must exist.
Status validate(const Scenario& scenario, const Job& job);

}  // namespace drover

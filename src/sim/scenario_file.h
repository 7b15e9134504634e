// Scenario files: a simulated cluster, its faults and the job it trains, written down as TOML.
//
// docs/scenarios.md lists the keys. Errors say file, line, column and key, and for an unknown key
// the nearest known one.
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
  Job job;            // as a job file says it; finished, but not yet validated
  Scenario scenario;
  std::optional<uint32_t> even_nodes;  // so many nodes share the workers evenly
  std::string text;                    // the file as it was read
};

Result<ScenarioFile> read_scenario_file(const std::string& path);

// The same for text that was read already. `name` stands for the file in errors; traces are looked
// for relative to its folder.
Result<ScenarioFile> parse_scenario(std::string_view text, const std::string& name);

// Spreads the workers over the nodes anew, for a job whose number of workers has changed since.
void place_workers(ScenarioFile& file);

// What the scenario and the job say together: every worker, node and shard it names exists.
Status validate(const Scenario& scenario, const Job& job);

}  // namespace drover

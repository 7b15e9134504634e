// LaunchOptions: the command lines of `drover launch` and `drover serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/train_options.h"
#include "core/result.h"
#include "job/job.h"

namespace drover {

inline constexpr uint16_t kServePort = 29600;

struct LaunchOptions {
  std::vector<std::string> script;  // launch: the script and its arguments
  // launch: the interpreter of scripts that end in .py. Empty: the python3 beside this program, as
  // in a virtual environment, or the first on the path.
  std::string python;
  uint32_t allow_failures = 0;        // launch: so many scripts may fail without failing the run
  uint16_t port = kServePort;         // serve: by which workers find the run
  bool json = false;                  // print the result as one line of JSON
  bool quiet = false;                 // print only errors and the result
  std::optional<uint16_t> dashboard;  // port of the dashboard; absent: no dashboard
  std::optional<uint16_t> metrics;    // port of the Prometheus metrics; absent: not served
  GivenFlags flags;
};

// `options` must outlive the parsing of `app`. Words after the script are its arguments.
void add_launch_options(CLI::App& app, LaunchOptions& options);
void add_serve_options(CLI::App& app, LaunchOptions& options);

// The job without a task: the script determines model, data and optimizer. Without --steps the job
// continues until the scripts end.
Result<Job> job_of(const LaunchOptions& options);

}  // namespace drover

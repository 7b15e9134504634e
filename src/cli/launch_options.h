// LaunchOptions: what `drover launch` and `drover serve` were told on their command lines.
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
  std::vector<std::string> script;  // launch: it and its arguments
  // launch: what runs a script that ends in .py; empty: the Python beside this program, as in a
  // virtual environment, or the first on the path.
  std::string python;
  uint16_t port = kServePort;         // serve: under which workers find the run
  bool json = false;                  // print the result as one line of JSON
  bool quiet = false;                 // only trouble, and the result
  std::optional<uint16_t> dashboard;  // the port of the run's page; absent: none
  std::optional<uint16_t> metrics;    // the same of its metrics
  GivenFlags flags;
};

// `options` must outlive the parsing of `app`. What follows the script is the script's.
void add_launch_options(CLI::App& app, LaunchOptions& options);
void add_serve_options(CLI::App& app, LaunchOptions& options);

// The job without a task: model, data and optimiser are the script's. Without --steps it goes on
// until the scripts end.
Result<Job> job_of(const LaunchOptions& options);

}  // namespace drover

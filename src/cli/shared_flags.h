// Flags that several commands have: help, runs on several hosts, dashboard and metrics.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "launch/cluster_options.h"

namespace drover {

// Adds --help-all, and removes from --help the flags that only few runs need. REQUIRES: all other
// options of `app` have been added.
void add_help_all(CLI::App& app);

// `options` must outlive the parsing of `app`.
void add_cluster_options(CLI::App& app, ClusterOptions& options);
// The part of them that a worker needs to join a run.
void add_token_options(CLI::App& app, ClusterOptions& options);

// --dashboard [PORT], --metrics [PORT]. `port` must outlive the parsing of `app`, and stays empty
// without the flag.
void add_dashboard_flag(CLI::App& app, std::optional<uint16_t>& port);
void add_metrics_flag(CLI::App& app, std::optional<uint16_t>& port);

}  // namespace drover

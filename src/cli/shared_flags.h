// Flags of several commands: of runs on several hosts, and of runs that are shown while they go.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "launch/cluster_options.h"

namespace drover {

// `options` must outlive the parsing of `app`.
void add_cluster_options(CLI::App& app, ClusterOptions& options);
// Of these, what somebody needs who only joins.
void add_token_options(CLI::App& app, ClusterOptions& options);

// --dashboard [PORT], --metrics [PORT]. `port` must outlive the parsing of `app`, and stays empty
// without the flag.
void add_dashboard_flag(CLI::App& app, std::optional<uint16_t>& port);
void add_metrics_flag(CLI::App& app, std::optional<uint16_t>& port);

}  // namespace drover

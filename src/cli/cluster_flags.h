// The flags of runs on several hosts.
#pragma once

#include <CLI/CLI.hpp>

#include "launch/cluster_options.h"

namespace drover {

// `options` must outlive the parsing of `app`.
void add_cluster_options(CLI::App& app, ClusterOptions& options);
// Of these, what somebody needs who only joins.
void add_token_options(CLI::App& app, ClusterOptions& options);

}  // namespace drover

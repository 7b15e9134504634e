// ClusterOptions: what the command line says of a run on several hosts.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

#include "core/time.h"
#include "node/cluster_address.h"
#include "node/cluster_placement.h"

namespace drover {

struct ClusterOptions {
  PlacementFlags placement;
  ListenChoice listen;
  std::string token_file;      // empty: DROVER_TOKEN, or a file named after the launch
  double join_timeout = 60.0;  // seconds
  Duration patience() const {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(join_timeout));
  }
};

// `options` must outlive the parsing of `app`.
void add_cluster_options(CLI::App& app, ClusterOptions& options);
// Of these, what somebody needs who only joins.
void add_token_options(CLI::App& app, ClusterOptions& options);

// The environment of this process.
Environment process_environment();

}  // namespace drover

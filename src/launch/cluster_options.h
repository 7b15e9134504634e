// ClusterOptions: how a process finds the other processes of a run on several hosts.
#pragma once

#include <chrono>
#include <string>

#include "core/time.h"
#include "launch/cluster_address.h"
#include "launch/cluster_placement.h"

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

}  // namespace drover

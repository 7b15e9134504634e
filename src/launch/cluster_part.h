// Part: what one process starts of a run of which others start the rest.
#pragma once

#include <chrono>
#include <string>

#include "core/time.h"
#include "job/job.h"
#include "launch/cluster_placement.h"
#include "node/acceptor.h"
#include "node/shared_floats.h"

namespace drover {

struct Part {
  RunKey key;
  Duties duties;
  // Where the coordinator listens; where it is not ours, the address to find it at.
  std::string coordinator;
  std::string announced;  // ours: the host that others are told instead, if it listens on all
  // Our shards listen on any port of this host; empty: on Unix sockets named after the key.
  std::string shard_host;
  Duration join_timeout = std::chrono::seconds(60);  // who has not come by then is left out
};

// What a transport means for memory.
Sharing sharing_of(Transport transport);
// How long a worker of this run tries in vain to join again.
Duration worker_rejoins_for(const Job& job);

// How names of a run's Unix sockets begin.
std::string socket_name(const RunKey& key);

}  // namespace drover

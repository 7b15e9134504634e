// Part: the processes of a run that one launcher starts. On several hosts there are several parts.
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
  // The coordinator's address: where to listen, or, if it is in another part, where to connect.
  std::string coordinator;
  std::string announced;  // the host to announce if this part's coordinator listens on all
  // The shards of this part listen on any port of this host; empty: on Unix sockets named after the
  // key.
  std::string shard_host;
  // Processes that have not joined by then are left out.
  Duration join_timeout = std::chrono::seconds(60);
};

// Whether processes share memory with this transport.
Sharing sharing_of(Transport transport);
// The patience of a worker of this run with attempts to rejoin (node/attempts.h).
Duration worker_rejoins_for(const Job& job);

// The prefix of the names of a run's Unix sockets.
std::string socket_name(const RunKey& key);

}  // namespace drover

// Placement: which part of a run a process is, when a launcher (srun, mpirun, torchrun, Kubernetes)
// starts the same command on several hosts.
//
// Functions of an environment and flags alone: nothing here looks at the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace drover {

// The environment of a process, or a part of it.
using Environment = std::map<std::string, std::string>;

inline constexpr uint16_t kClusterPort = 29600;

enum class LaunchedBy : uint8_t { kNobody, kSlurm, kOpenMpi, kTorchrun, kKubernetes, kFlags };
std::string_view name_of(LaunchedBy launcher);

// What the user said beside the environment.
struct PlacementFlags {
  std::string role;              // coordinator, shard or worker; empty: as the launcher says
  std::optional<uint32_t> rank;  // of that role
  std::string coordinator;       // HOST or HOST:PORT; empty: as the launcher says
  std::optional<uint16_t> port;  // of the coordinator
};

enum class Duty : uint8_t { kCoordinator, kShard, kWorker };

struct Placement {
  LaunchedBy launcher = LaunchedBy::kNobody;
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint32_t local_rank = 0;       // among those of this host
  std::optional<uint32_t> host;  // which of the hosts; absent: the launcher does not say
  uint32_t hosts = 1;
  std::string coordinator;   // the host it is on; empty: the launcher does not say
  uint16_t port = 0;         // of the coordinator
  std::string launch;        // tells this launch from others of the same user; empty: nothing does
  std::optional<Duty> only;  // the process is this and nothing else; see --role
  bool mpi = false;          // the launcher lets a process of each rank speak MPI

  // Several processes make one run. Otherwise `drover train` starts everything itself.
  bool of_many() const { return ranks > 1 || only.has_value(); }
  bool operator==(const Placement&) const = default;
};

// An environment that is half set or contradicts itself is an error that says which variables.
Result<Placement> find_placement(const Environment& environment, const PlacementFlags& flags);

// What a process of a run has to start.
struct Duties {
  bool coordinator = false;  // and the evaluator, and whatever shows the run
  std::vector<ShardId> shards;
  std::vector<ShardId> standbys;  // if the run has them
  std::vector<WorkerId> workers;
  bool operator==(const Duties&) const = default;
};

// Over all ranks of a launch, each worker and each shard is somebody's duty once: worker w is rank
// w's, in turn if there are more workers than ranks; shards are the first rank's of each host, in
// turn. Where nobody knows the hosts, shards are spread evenly over the ranks. A shard's standby is
// on the next host, or the next rank's.
Duties duties_of(const Placement& placement, uint32_t workers, uint32_t shards);

// The same where a rank can be one process alone, because that is what MPI calls by its number:
// shards are spread evenly over the ranks, beginning with rank 0, and all other ranks are workers.
// REQUIRES: there are fewer shards than ranks, and at least one.
Duties duties_with_mpi(const Placement& placement, uint32_t shards);

// The environment of this process.
Environment process_environment();

// "node[01-03,7],gpu1" is node01, node02, node03, node7
// and gpu1.
Result<std::vector<std::string>> expand_hosts(std::string_view list);

}  // namespace drover

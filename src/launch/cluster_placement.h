// Placement: which part of a run a process is, when a launcher (srun, mpirun, torchrun, Kubernetes)
// starts the same command on several hosts.
//
// Pure functions of an environment and flags: nothing here looks at the machine.
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

enum class LaunchedBy : uint8_t { kNothing, kSlurm, kOpenMpi, kTorchrun, kKubernetes, kFlags };
std::string_view name_of(LaunchedBy launcher);

// The flags of the user, which take precedence over the environment.
struct PlacementFlags {
  std::string role;              // coordinator, shard or worker; empty: from the environment
  std::optional<uint32_t> rank;  // of that role
  std::string coordinator;       // HOST or HOST:PORT; empty: from the environment
  std::optional<uint16_t> port;  // of the coordinator
};

enum class Duty : uint8_t { kCoordinator, kShard, kWorker };

struct Placement {
  LaunchedBy launcher = LaunchedBy::kNothing;
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint32_t local_rank = 0;       // among the ranks of this host
  std::optional<uint32_t> host;  // number of this host; absent: unknown
  uint32_t hosts = 1;
  std::string coordinator;   // its host; empty: unknown
  uint16_t port = 0;         // of the coordinator
  std::string launch;        // distinguishes this launch from others of the user; empty: unknown
  std::optional<Duty> only;  // the process's single duty; see --role
  bool mpi = false;          // the launcher supports MPI in a process of each rank

  // Whether several launched processes make one run. Otherwise `drover train` starts all processes.
  bool of_many() const { return ranks > 1 || only.has_value(); }
  bool operator==(const Placement&) const = default;
};

// An error names the variables of an environment that is incomplete or inconsistent.
Result<Placement> find_placement(const Environment& environment, const PlacementFlags& flags);

// The processes of a run that one rank starts.
struct Duties {
  bool coordinator = false;  // with the evaluator, the page and the progress display
  std::vector<ShardId> shards;
  std::vector<ShardId> standbys;  // if the run has them
  std::vector<WorkerId> workers;
  bool operator==(const Duties&) const = default;
};

// Each worker and each shard is started by exactly one rank of a launch. Worker w is started by
// rank w modulo the number of ranks, shard s by the first rank of host s modulo the number of
// hosts. If the hosts are not known, shards are spread evenly over the ranks. A shard's standby is
// on the next host, or, without hosts, at the next rank.
Duties duties_of(const Placement& placement, uint32_t workers, uint32_t shards);

// The same with MPI, where a rank is one process, a shard or a worker. Shards are spread evenly
// over the ranks, beginning with rank 0, and all other ranks are workers. REQUIRES: there are fewer
// shards than ranks, and at least one.
Duties duties_with_mpi(const Placement& placement, uint32_t shards);

// The environment of this process.
Environment process_environment();

// Expands Slurm's notation: "node[01-03,7],gpu1" is node01, node02, node03, node7 and gpu1.
Result<std::vector<std::string>> expand_hosts(std::string_view list);

}  // namespace drover

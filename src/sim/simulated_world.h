// SimulatedWorld: the state that all parts of a simulation share: virtual time, the network, the
// disk and the processes. It has no behaviour of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "shard/kept_parts.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/party.h"
#include "sim/processes.h"
#include "sim/simulated_coordinator.h"
#include "sim/simulated_disk.h"
#include "sim/simulated_evaluator.h"
#include "sim/simulated_server.h"
#include "sim/simulated_worker.h"
#include "sim/simulation_settings.h"
#include "sim/witness.h"

namespace drover {

struct SimulatedWorld {
  // `witness` may be null. REQUIRES: it outlives this object.
  SimulatedWorld(const SimulationSettings& simulated, Witness* attached)
      : settings(simulated),
        witness(attached),
        network(settings.scenario, settings.seed),
        disk(settings.scenario.disk, settings.seed),
        workers(settings.coordinator.workers) {}

  // The process that serves a shard.
  Party server_of(ShardId shard) const;
  // Null if the process is not running.
  SimulatedServer* find_server(Party party) const;
  // Whether the witness sees the process: it takes part in the current incarnation of the run.
  bool is_watched(Party party, uint64_t number) const;
  // The name that the witness knows: that of the shard, if the process serves one.
  Party seen_as(Party party) const;
  Load load() const;

  template <typename Work>
  void with_coordinator(Work&& work) {
    coordinator->work(work);
  }
  // Stops the state machine of a process.
  void retire(Party party);

  const SimulationSettings settings;
  Witness* const witness;
  EventQueue time;
  Network network;
  SimulatedDisk disk;
  Processes processes;
  uint64_t incarnation = 0;  // of the coordinator
  std::unique_ptr<SimulatedCoordinator> coordinator;
  struct Server {
    KeptParts kept;
    std::unique_ptr<SimulatedServer> process;
  };
  std::map<Party, Server> servers;
  std::map<ShardId, Role> serving;
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
  std::unique_ptr<SimulatedEvaluator> evaluator;
  // Processes that have stopped, kept alive because planned events refer to them.
  std::vector<std::shared_ptr<void>> retired;
};

}  // namespace drover

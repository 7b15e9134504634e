// SimulatedWorld: what all parts of a simulation share: virtual time, the network, the disk, and
// the processes that there are. It decides nothing.
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
  // The witness may be null, and outlives this.
  SimulatedWorld(const SimulationSettings& what, Witness* sees_all)
      : settings(what),
        witness(sees_all),
        network(settings.scenario, settings.seed),
        disk(settings.scenario.disk, settings.seed),
        workers(settings.coordinator.workers) {}

  // The process that serves a shard.
  Party server_of(ShardId shard) const;
  // Null: it is not running.
  SimulatedServer* find_server(Party who) const;
  // The witness sees one incarnation of the run at a time, and the processes that take part in it.
  bool is_watched(Party who, uint64_t number) const;
  // Workers, the record and the witness know a shard, whichever process serves it.
  Party seen_as(Party who) const;
  Load load() const;

  template <typename Work>
  void with_coordinator(Work&& work) {
    coordinator->work(work);
  }
  // The process does nothing any more.
  void retire(Party who);

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
  // Processes that are over: what was planned for them still finds them.
  std::vector<std::shared_ptr<void>> retired;
};

}  // namespace drover

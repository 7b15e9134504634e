// Connections: how processes of a simulated run connect to each other, and what they notice when
// one of them ends.
#pragma once

#include <functional>
#include <utility>

#include "sim/simulated_world.h"
#include "sim/simulation_record.h"

namespace drover {

class Connections {
 public:
  struct Handlers {
    // A worker, the evaluator or a standby has connected to a shard.
    std::function<void(Party server, Party client)> on_connected;
    // One end is told that the other has gone.
    std::function<void(Party server, Party client)> on_client_lost;
    std::function<void(Party server, Party client)> on_server_lost;
  };
  // What is handed in outlives this.
  Connections(SimulatedWorld& world, const SimulationRecord& record, Handlers handlers)
      : world_(world), record_(record), handlers_(std::move(handlers)) {}

  // To a shard, or to the one that a standby is to stand by for. The client tries until the shard
  // has a plan.
  void connect(Party client, uint64_t number, Party server);
  // The process is over. Each connection ends behind what was sent on it.
  void close_all(Party who, uint64_t number);

 private:
  void plan_close(Party server, Party client, Lane lane, uint64_t server_number,
                  uint64_t client_number, bool server_ended);

  SimulatedWorld& world_;
  const SimulationRecord& record_;
  const Handlers handlers_;
};

}  // namespace drover

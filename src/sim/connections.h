// Connections: connects the processes of a simulated run, and notifies both ends when one of them
// stops.
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
    // One end is notified that the other has stopped.
    std::function<void(Party server, Party client)> on_client_lost;
    std::function<void(Party server, Party client)> on_server_lost;
  };
  // REQUIRES: the references outlive this object.
  Connections(SimulatedWorld& world, const SimulationRecord& record, Handlers handlers)
      : world_(world), record_(record), handlers_(std::move(handlers)) {}

  // Connects to a shard, or a standby to its shard. The client retries until the shard has a plan.
  void connect(Party client, uint64_t number, Party server);
  // The process has stopped. Each connection closes after the messages that were sent on it.
  void close_all(Party party, uint64_t number);

 private:
  void plan_close(Party server, Party client, Lane lane, uint64_t server_number,
                  uint64_t client_number, bool server_ended);

  SimulatedWorld& world_;
  const SimulationRecord& record_;
  const Handlers handlers_;
};

}  // namespace drover

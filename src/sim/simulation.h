// Simulation: a whole run in virtual time. The coordinator, shards and workers are the same state
// machines as in a live run, and gradients are real. The scenario determines time, network and
// faults. A run that restarts has several incarnations of its coordinator, as a live one does.
// Equal settings give identical sequences of events.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/run_record.h"
#include "sim/connections.h"
#include "sim/dispatcher.h"
#include "sim/incarnations.h"
#include "sim/lifecycle.h"
#include "sim/schedule.h"
#include "sim/simulated_world.h"
#include "sim/simulation_record.h"
#include "sim/simulation_settings.h"
#include "sim/standby_cover.h"
#include "sim/transit.h"
#include "sim/witness.h"
#include "worker/task.h"

namespace drover {

class Simulation {
 public:
  // Makes the policy of each incarnation of the coordinator; null in asynchronous runs.
  using MakePolicy = Incarnations::MakePolicy;

  // `witness` may be null. REQUIRES: the references and pointers outlive this object.
  Simulation(const SimulationSettings& settings, MakePolicy make_policy, Task& task,
             std::vector<RunObserver*> observers, Witness* witness);

  // Runs to the end. Calls `pulse` every few hundred events, and interrupts the run if it returns
  // false. An Error is a bug in Drover: a violation of the protocol, or a run that hangs. A witness
  // also sees the messages that are under way when the run ends.
  Result<RunEnd> run(const std::function<bool()>& pulse);

  // Called when the run restarts: steps from `version` on are taken back.
  void on_restart(std::function<Status(Version version)> call) {
    incarnations_.on_restart(std::move(call));
  }

  TimePoint now() const { return world_.time.now(); }

 private:
  void plan_faults();
  void run_remaining_events();
  void on_connected(Party server, Party client);
  void on_client_lost(Party server, Party client);
  void on_server_lost(Party server, Party client);
  void carry_out(CoordinatorOutput out);
  void refuse(Party party, const Status& status);

  // The order matters: each part refers to those above it, and calls those below it by handlers.
  SimulatedWorld world_;
  SimulationRecord record_;
  Schedule schedule_;
  StandbyCover cover_;
  Connections connections_;
  Dispatcher dispatcher_;
  Transit transit_;
  Incarnations incarnations_;
  Lifecycle lifecycle_;
};

}  // namespace drover

// Simulation: a whole run in virtual time. The coordinator, shards and workers are the same state
// machines that run live; gradients are real; clock, network and faults are the scenario's. A run
// that restarts goes through several incarnations of its coordinator, as a live one does.
//
// Equal settings give equal runs, event by event.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/run_record.h"
#include "sim/connections.h"
#include "sim/incarnations.h"
#include "sim/lifecycle.h"
#include "sim/moments.h"
#include "sim/reception.h"
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
  // Makes the policy of each incarnation of the coordinator; null where there is none.
  using MakePolicy = Incarnations::MakePolicy;

  // Everything handed in must outlive this. `witness` may be null.
  Simulation(const SimulationSettings& settings, MakePolicy make_policy, Task& task,
             std::vector<RunObserver*> observers, Witness* witness);

  // To the end of the run. Calls `pulse` now and then; if it returns false the run is interrupted.
  // An Error is a bug of ours: a breach of the protocol, or a run in which nothing happens any
  // more. If there is a witness it also gets to see what was still under way at the end.
  Result<RunEnd> run(const std::function<bool()>& pulse);

  // Called when the run restarts: steps from `version` on are taken back.
  void on_restart(std::function<Status(Version version)> call) {
    incarnations_.on_restart(std::move(call));
  }

  TimePoint now() const { return world_.time.now(); }

 private:
  void plan_faults();
  void finish_what_is_under_way();
  void on_connected(Party server, Party client);
  void on_client_lost(Party server, Party client);
  void on_server_lost(Party server, Party client);
  void carry_out(CoordinatorOutput out);
  void refuse(Party who, const Status& status);

  // In this order: each knows those above it, and tells those below it by its handlers.
  SimulatedWorld world_;
  SimulationRecord record_;
  Moments moments_;
  StandbyCover cover_;
  Connections connections_;
  Reception reception_;
  Transit transit_;
  Incarnations incarnations_;
  Lifecycle lifecycle_;
};

}  // namespace drover

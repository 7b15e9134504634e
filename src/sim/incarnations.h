// Incarnations: starts the coordinators of a simulated run, one after the other, as the launcher of
// a live run does when the run restarts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "policy/policy.h"
#include "sim/connections.h"
#include "sim/simulated_world.h"
#include "sim/simulation_record.h"
#include "sim/standby_cover.h"

namespace drover {

class Incarnations {
 public:
  using MakePolicy = std::function<std::unique_ptr<Policy>()>;
  struct Handlers {
    MakePolicy make_policy;
    std::function<void(CoordinatorOutput)> carry_out;  // executes a coordinator's output
    // Called when the run restarts: steps from `version` on are taken back. May be empty.
    std::function<Status(Version version)> restarted;
  };
  // REQUIRES: the references outlive this object.
  Incarnations(SimulatedWorld& world, SimulationRecord& record, Connections& connections,
               StandbyCover& cover, Handlers handlers)
      : world_(world),
        record_(record),
        connections_(connections),
        cover_(cover),
        handlers_(std::move(handlers)) {}

  void on_restart(std::function<Status(Version)> call) { handlers_.restarted = std::move(call); }

  // Starts an incarnation of the coordinator.
  void begin(const CoordinatorSettings& settings);
  // A step has opened: training has begun, or continues after a restart.
  void on_step_opened();
  // The coordinator reports that the run restarts. Its process ends, and the next one is started.
  void on_restart_announced();
  // The process of the coordinator is lost. REQUIRES: its connections are closed. It is restarted
  // `back` later.
  void on_coordinator_lost(Duration back);
  // To be called before the loss of any server.
  void note_loss(Party party);

 private:
  void restart(const std::optional<ResumeFrom>& committed);
  CoordinatorSettings next_settings(const std::optional<ResumeFrom>& committed) const;
  void tick(uint64_t incarnation);

  SimulatedWorld& world_;
  SimulationRecord& record_;
  Connections& connections_;
  StandbyCover& cover_;
  Handlers handlers_;
  uint32_t server_losses_ = 0;  // not counting standbys
  bool covered_ = false;        // the standby of the last lost shard had every step
  bool training_ = false;
};

}  // namespace drover

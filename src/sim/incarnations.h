// Incarnations: the coordinators of a simulated run, one after the other: what the launcher of a
// live run does when a run restarts.
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
    std::function<void(CoordinatorOutput)> carry_out;  // what a coordinator says
    // Called when the run restarts: steps from `version` on are taken back. May be empty.
    std::function<Status(Version version)> restarted;
  };
  // What is handed in outlives this.
  Incarnations(SimulatedWorld& world, SimulationRecord& record, Connections& connections,
               StandbyCover& cover, Handlers handlers)
      : world_(world),
        record_(record),
        connections_(connections),
        cover_(cover),
        handlers_(std::move(handlers)) {}

  void on_restart(std::function<Status(Version)> call) { handlers_.restarted = std::move(call); }

  // The first, and each after it.
  void begin(const CoordinatorSettings& settings);
  // A step has opened: the run is under way, or has continued.
  void on_step_opened();
  // The coordinator says that the run restarts, and its process makes room for the next.
  void on_again();
  // The process of the coordinator is lost. REQUIRES: its connections are closed. It is restarted
  // `back` later.
  void on_coordinator_lost(Duration back);
  // Before the loss of a server, of whichever kind.
  void note_loss(Party who);

 private:
  void restart(const std::optional<ResumeFrom>& committed);
  CoordinatorSettings next_settings(const std::optional<ResumeFrom>& committed) const;
  void tick(uint64_t incarnation);

  SimulatedWorld& world_;
  SimulationRecord& record_;
  Connections& connections_;
  StandbyCover& cover_;
  Handlers handlers_;
  uint32_t server_losses_ = 0;  // without those of standbys
  bool covered_ = false;  // the last one, until the run has continued: its standby had everything
  bool training_ = false;
};

}  // namespace drover

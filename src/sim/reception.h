// Reception: gives each message that arrives to the state machine that it is for, as the process
// around that machine does.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "sim/connections.h"
#include "sim/simulated_world.h"
#include "sim/simulation_record.h"
#include "sim/standby_cover.h"

namespace drover {

class Reception {
 public:
  struct Handlers {
    // A member is to throw away all that it knows of the run, and to join it again.
    std::function<void(Party who)> rejoin;
    // A machine says that `who` breaks the protocol.
    std::function<void(Party who, const Status& status)> refuse;
  };
  // What is handed in outlives this.
  Reception(SimulatedWorld& world, SimulationRecord& record, Connections& connections,
            StandbyCover& cover, Handlers handlers)
      : world_(world),
        record_(record),
        connections_(connections),
        cover_(cover),
        handlers_(std::move(handlers)),
        repeated_closings_(world.settings.scenario.repeated_closings) {}

  void receive(Party from, Party to, const Outgoing& message, SharedBuffer floats);

 private:
  void to_coordinator(Party from, const Outgoing& message);
  void to_server(Party to, Party from, const Outgoing& message, SharedBuffer floats);
  Status from_coordinator(SimulatedServer& server, Party self, const Control& message);
  Status from_standby(SimulatedServer& server, Party self, const Outgoing& message);
  static Status to_standby(SimulatedServer& server, const Outgoing& message);
  void to_member(Party to, Party from, const Outgoing& message);
  void order_member(Party to, const Control& message);

  SimulatedWorld& world_;
  SimulationRecord& record_;
  Connections& connections_;
  StandbyCover& cover_;
  const Handlers handlers_;
  std::vector<RepeatedClosing> repeated_closings_;  // that are still to come
};

}  // namespace drover

// Dispatcher: passes each message that arrives to the state machine of the receiver, as the process
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

class Dispatcher {
 public:
  struct Handlers {
    // A member must discard its state of the run, and join it again.
    std::function<void(Party party)> rejoin;
    // A machine reports whether `party` breaks the protocol.
    std::function<void(Party party, const Status& status)> refuse;
  };
  // REQUIRES: the references outlive this object.
  Dispatcher(SimulatedWorld& world, SimulationRecord& record, Connections& connections,
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
  std::vector<RepeatedClosing> repeated_closings_;  // not sent yet
};

}  // namespace drover

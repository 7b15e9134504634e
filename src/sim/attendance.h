// Attendance: who takes part where, as the servers should see it, from what they were told.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/network.h"
#include "wire/control.h"
#include "wire/outbox.h"

namespace drover {

class Attendance {
 public:
  struct AtShard {
    std::set<WorkerId> connected = {};
    std::map<WorkerId, Step> members =
        {};  // and how many steps had closed there when each became one
    std::map<WorkerId, Version> asked = {};  // the newest version that it has asked for
    std::optional<Decision> decision = {};   // the last that has come
    // All that have come, by step: a block may have closed by one before the last.
    std::map<Step, std::vector<Decision>> decisions = {};
    TimePoint decided{};  // when the last came
    Step closed = 0;      // steps
    TimePoint opened{};   // the step that is open now
    bool is_member(WorkerId worker) const { return members.contains(worker); }
  };

  void on_sent(Party from, const Outgoing& message, TimePoint now);
  void on_received(Party from, const Outgoing& message, TimePoint now);
  void on_lost(Party where, WorkerId worker);
  // The run continues from `version` with another coordinator: all join anew.
  void restart(Version version);

  AtShard& at(ShardId shard) {
    return shards_.try_emplace(shard, AtShard{.closed = first_}).first->second;
  }
  // Who has told the coordinator that it can begin, and is not lost.
  const std::set<WorkerId>& ready() const { return ready_; }
  // Whether the coordinator has ever lost it.
  bool was_lost(WorkerId worker) const { return lost_.contains(worker); }

 private:
  std::map<ShardId, AtShard> shards_;
  Step first_ = 0;  // that the run began with, or continued with
  std::set<WorkerId> ready_;
  std::set<WorkerId> lost_;
};

}  // namespace drover

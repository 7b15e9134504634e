// ExpectedMembers: which workers take part on which server, derived from the messages that the
// servers received. The Referee compares the servers' behaviour with it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/network.h"
#include "wire/control.h"
#include "wire/outbox.h"

namespace drover {

class ExpectedMembers {
 public:
  struct AtShard {
    std::set<WorkerId> connected = {};
    std::map<WorkerId, Step> members =
        {};  // with the steps that had closed there when it became one
    std::map<WorkerId, Version> asked = {};  // the newest version that each has asked for
    std::optional<Decision> decision = {};   // the last received
    // All decisions received, by step: a block may have closed by one before the last.
    std::map<Step, std::vector<Decision>> decisions = {};
    TimePoint decided{};  // when the last decision was received
    Step closed = 0;      // number of closed steps
    TimePoint opened{};   // when the open step was opened
    bool is_member(WorkerId worker) const { return members.contains(worker); }
  };

  void on_sent(Party from, const Outgoing& message, TimePoint now);
  void on_received(Party from, const Outgoing& message, TimePoint now);
  void on_lost(Party where, WorkerId worker);
  // The run continues from `version` with a new coordinator, and all workers join again.
  void restart(Version version);

  AtShard& at(ShardId shard) {
    return shards_.try_emplace(shard, AtShard{.closed = first_}).first->second;
  }
  // Workers that have reported to the coordinator that they are ready, and are not lost.
  const std::set<WorkerId>& ready() const { return ready_; }
  // Whether the coordinator has ever lost this worker.
  bool was_lost(WorkerId worker) const { return lost_.contains(worker); }

 private:
  std::map<ShardId, AtShard> shards_;
  Step first_ = 0;  // the first step of this incarnation of the run
  std::set<WorkerId> ready_;
  std::set<WorkerId> lost_;
};

}  // namespace drover

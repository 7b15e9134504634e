// StandbyFeed: the shard's side of the connection to its standby. Sends it every version, and holds
// back what the coordinator is to hear of a step until the standby has what the step made.
#pragma once

#include <functional>
#include <memory>

#include "core/checkpoint_part.h"
#include "node/channel.h"
#include "shard/kept_parts.h"
#include "shard/replication.h"

namespace drover {

class StandbyFeed {
 public:
  // `tell` is called with what the coordinator may hear, in order. `kept` outlives this.
  StandbyFeed(ShardId shard, KeptParts& kept, std::function<void(Frame)> tell)
      : source_(shard, kept), tell_(std::move(tell)) {}

  // A standby is here, and is sent all that is kept. It replaces one that was here: an earlier
  // incarnation, whose end has not been noticed yet.
  void attach(const std::shared_ptr<Channel>& channel);
  // The shard has come to another version.
  void on_version(CheckpointPart part, uint64_t life);
  // All shards have come to version `step`.
  void on_decision(Step step) { source_.on_decision(step); }
  // Something for the coordinator.
  void send_to_coordinator(Outgoing message);

 private:
  void send_all(Outbox out);

  ReplicaSource source_;
  const std::function<void(Frame)> tell_;
  std::shared_ptr<Channel> channel_;  // null: there is no standby
};

}  // namespace drover

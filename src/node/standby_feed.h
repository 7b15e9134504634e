// StandbyFeed: the shard's side of the connection to its standby. Sends it every version, and holds
// back reports to the coordinator until the standby has the versions that led to them.
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
  // `send` sends a frame to the coordinator; it is called in the order of the reports. REQUIRES:
  // `kept` outlives this.
  StandbyFeed(ShardId shard, KeptParts& kept, std::function<void(Frame)> send)
      : source_(shard, kept), send_(std::move(send)) {}

  // A standby has connected: sends it all that is kept. It replaces an earlier connection, of an
  // incarnation that has ended without the shard noticing it yet.
  void attach(const std::shared_ptr<Channel>& channel);
  // The shard has reached another version, in the run's incarnation `incarnation`.
  void on_version(CheckpointPart part, uint64_t incarnation);
  // All shards have reached version `step`.
  void on_decision(Step step) { source_.on_decision(step); }
  // Sends a message to the coordinator when the standby has all versions so far.
  void send_to_coordinator(Outgoing message);

 private:
  void send_all(Outbox out);

  ReplicaSource source_;
  const std::function<void(Frame)> send_;
  std::shared_ptr<Channel> channel_;  // null: there is no standby
};

}  // namespace drover

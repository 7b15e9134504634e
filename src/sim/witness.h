// Witness: sees everything that happens in a simulated cluster, and changes nothing.
#pragma once

#include <map>
#include <string>

#include "coordinator/coordinator.h"
#include "core/checkpoint_part.h"
#include "core/run_record.h"
#include "core/time.h"
#include "sim/network.h"
#include "wire/outbox.h"

namespace drover {

// How much is waiting.
struct Load {
  size_t events = 0;         // in the cluster: messages under way, gradients being computed
  size_t kept = 0;           // in the state machine that remembers the most for later
  size_t kept_by_shard = 0;  // the same of shards alone
};

// From where a run continues that restarts.
struct Restart {
  Version version = 0;
  // Of the shards' processes; otherwise from a checkpoint, if there is one.
  bool from_memory = false;
  bool loses_none = false;  // it must be from memory: the standby of the lost shard had everything
};

class Witness {
 public:
  virtual ~Witness() = default;
  // A state machine has sent this; its floats are what they were at that moment.
  virtual void on_sent(Party from, const Outgoing& message, TimePoint now) = 0;
  // A server is about to be told this.
  virtual void on_received(Party from, const Outgoing& message, TimePoint now) = 0;
  // The server `at` is about to be told that a worker's connection has ended.
  virtual void on_lost(Party at, WorkerId worker, TimePoint now) = 0;
  // The process that serves a shard has ended.
  virtual void on_server_lost(ShardId) {}
  // The coordinator has ended, and the run will continue with another. What the processes of the
  // incarnation that has ended still do is not seen.
  virtual void on_restart(const Restart&, TimePoint) {}
  // The manifest of a checkpoint is written, and these are its parts.
  virtual void on_checkpoint(const CheckpointReady&, const std::map<ShardId, CheckpointPart>&,
                             TimePoint) {}
  // Part of the cluster calls this a breach of the protocol.
  virtual void on_breach(const std::string& what, TimePoint now) = 0;
  // After everything that happened at a moment.
  virtual void on_load(const Load& load, TimePoint now) = 0;
};

}  // namespace drover

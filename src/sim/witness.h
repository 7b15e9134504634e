// Witness: an observer of all messages and faults of a simulated cluster. It changes nothing.
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

// The amount of pending work.
struct Load {
  size_t events = 0;         // in the cluster: messages under way, gradients being computed
  size_t kept = 0;           // the most entries kept by a state machine
  size_t kept_by_shard = 0;  // the most entries kept by a shard
};

// How a restarted run continues.
struct Restart {
  Version version = 0;
  // From the memory of the shards' processes; otherwise from a checkpoint, if there is one.
  bool from_memory = false;
  // The standby of the lost shard had all steps: the run must continue from memory.
  bool covered_by_standby = false;
};

class Witness {
 public:
  virtual ~Witness() = default;
  // A state machine has sent this message. Its floats have the values of that time.
  virtual void on_sent(Party from, const Outgoing& message, TimePoint now) = 0;
  // A server is about to receive this message.
  virtual void on_received(Party from, const Outgoing& message, TimePoint now) = 0;
  // The server `at` is about to be notified that a worker's connection has ended.
  virtual void on_lost(Party at, WorkerId worker, TimePoint now) = 0;
  // The process that serves a shard has stopped.
  virtual void on_server_lost(ShardId) {}
  // The coordinator has stopped, and the run will continue with another one. The witness does not
  // see later messages of this incarnation.
  virtual void on_restart(const Restart&, TimePoint) {}
  // The manifest of a checkpoint with these parts was written.
  virtual void on_checkpoint(const CheckpointReady&, const std::map<ShardId, CheckpointPart>&,
                             TimePoint) {}
  // A process of the cluster has detected a violation of the protocol.
  virtual void on_breach(const std::string& what, TimePoint now) = 0;
  // Called after each event.
  virtual void on_load(const Load& load, TimePoint now) = 0;
};

}  // namespace drover

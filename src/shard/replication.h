// Replication of every version of a shard's blocks to its standby, as two state machines without
// I/O. ReplicaSource is the shard's side, ReplicaIntake is the standby's.
//
// Workers get new parameters at once. Only the report that a step has closed waits until the
// standby has the version: the coordinator records a step, and decides a later one, only if the
// step's result is kept twice.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/float_buffer.h"
#include "core/ids.h"
#include "core/result.h"
#include "shard/kept_parts.h"
#include "wire/outbox.h"

namespace drover {

class ReplicaSource {
 public:
  // `kept` must outlive this.
  ReplicaSource(ShardId shard, KeptParts& kept) : shard_(shard), kept_(kept) {}

  // A standby has connected. Sends it all kept versions.
  void on_standby(Outbox& out);
  // The standby is lost. Messages no longer wait for it.
  void on_standby_lost(Outbox& out);
  // The shard has reached a new version.
  void on_version(CheckpointPart part, uint64_t incarnation, Outbox& out);
  // An error means that the standby breaks the protocol.
  Status on_replicated(const Replicated& replicated, Outbox& out);
  // All shards have reached version `step`: the run never restarts from an earlier one.
  void on_decision(Step step) { kept_.drop_before(step); }

  // Sends a message to the coordinator, once the versions that it reports are replicated. Messages
  // stay in order.
  void send_to_coordinator(Outgoing message, Outbox& out);

 private:
  void send(const KeptVersion& version, Outbox& out);
  void release(Outbox& out);

  const ShardId shard_;
  KeptParts& kept_;
  bool attached_ = false;
  Version sent_ = 0;           // the newest version sent to the standby
  Version replicated_ = 0;     // the newest version that the standby has
  std::deque<Outgoing> held_;  // messages that wait
};

class ReplicaIntake {
 public:
  explicit ReplicaIntake(ShardId shard, KeptParts& kept) : shard_(shard), kept_(kept) {}

  // An error (here and below) means that the shard breaks the protocol.
  Status on_replica(const Replica& announced, Outbox& out);
  // The number of floats of the next frame, before memory is allocated for it.
  Result<size_t> payload_floats(const FrameHeader& header) const;
  Status on_floats(const FrameHeader& header, ConstBuffer floats, Outbox& out);

 private:
  void skip_missing(Outbox& out);

  const ShardId shard_;
  KeptParts& kept_;
  std::optional<Replica> announced_;  // a version that is still incomplete
  CheckpointPart part_;               // what has arrived of it
  uint32_t block_ = 0;                // the block and buffer that arrive next
  uint32_t floats_ = 0;
};

}  // namespace drover

// Replication: a shard's standby gets every version of its blocks, as two state machines without
// I/O. ReplicaSource is the shard's side, ReplicaIntake the standby's.
//
// Workers get new parameters at once. What waits for the standby is only the news that a step has
// closed: the coordinator records no step, and decides none after it, that is not kept twice.
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
  // What is kept outlives this.
  ReplicaSource(ShardId shard, KeptParts& kept) : shard_(shard), kept_(kept) {}

  // A standby is here, and gets all that is kept.
  void on_standby(Outbox& out);
  // It is gone, and not waited for.
  void on_standby_lost(Outbox& out);
  // The shard has come to another version.
  void on_version(CheckpointPart part, uint64_t life, Outbox& out);
  // An error means that the standby breaks the protocol.
  Status on_replicated(const Replicated& replicated, Outbox& out);
  // All shards have come to version `step`: nobody goes back behind it.
  void on_decision(Step step) { kept_.drop_before(step); }

  // Something for the coordinator. What it is told stays in order.
  void send_to_coordinator(Outgoing message, Outbox& out);

 private:
  void send(const KeptVersion& version, Outbox& out);
  void release(Outbox& out);

  const ShardId shard_;
  KeptParts& kept_;
  bool attached_ = false;
  Version sent_ = 0;        // the newest that the standby was sent
  Version replicated_ = 0;  // the newest that it has
  std::deque<Outgoing> held_;
};

class ReplicaIntake {
 public:
  explicit ReplicaIntake(ShardId shard, KeptParts& kept) : shard_(shard), kept_(kept) {}

  // An error means that the other end breaks the protocol, here and below.
  Status on_replica(const Replica& announced, Outbox& out);
  // How many floats the next frame has, before any memory is given to it.
  Result<size_t> payload_floats(const FrameHeader& header) const;
  Status on_floats(const FrameHeader& header, ConstBuffer floats, Outbox& out);

 private:
  void skip_missing(Outbox& out);

  const ShardId shard_;
  KeptParts& kept_;
  std::optional<Replica> announced_;  // of which some is still to come:
  CheckpointPart part_;
  uint32_t block_ = 0;
  uint32_t floats_ = 0;
};

}  // namespace drover

// ShardServer: a Shard with its start and replication, as a state machine without I/O.
//
// It starts the shard with initial parameters, from a checkpoint or from memory. With a standby it
// keeps every version, and holds back the report of a closed step until the standby has the step's
// version.
#pragma once

#include <optional>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/result.h"
#include "shard/kept_parts.h"
#include "shard/replication.h"
#include "shard/shard.h"
#include "wire/outbox.h"

namespace drover {

class ShardServer {
 public:
  // `kept` must outlive this: it survives a restart of the run.
  ShardServer(Role role, ShardId id, KeptParts& kept, size_t window_bytes = Shard::kWindowBytes,
              BufferPool::Make published = nullptr)
      : role_(role),
        id_(id),
        kept_(kept),
        shard_(id, window_bytes, std::move(published)),
        source_(id, kept) {}

  Shard& shard() { return shard_; }
  const Shard& shard() const { return shard_; }
  // REQUIRES (here and below): on_plan() was called.
  const Plan& plan() const { return *plan_; }
  bool has_plan() const { return plan_.has_value(); }

  // The coordinator's plan: this process serves its shard. Returns whether the shard has started.
  // If not, the caller reads its blocks from plan.resume_from and calls start(). An error: the
  // version that the plan continues from is not in memory here. REQUIRES: !has_plan().
  Result<bool> on_plan(const Plan& plan);
  // `saved`: this shard's blocks in the checkpoint.
  void start(const std::vector<SavedBlock>& saved);

  // See Shard::on_length().
  Status on_length(Step steps);

  // REQUIRES: shard().check_decision() is ok.
  void on_decision(const Decision& decision, TimePoint now, Outbox& out);

  // See ReplicaSource::send_to_coordinator().
  void send_to_coordinator(Outgoing message, Outbox& out) {
    source_.send_to_coordinator(std::move(message), out);
  }
  // For the versions that the shard has reached since the last call: sends them to the standby, and
  // returns the parts of checkpoints that are due. Call after every call of a method of shard().
  std::vector<CheckpointPart> take_checkpoints(Outbox& out);

  // The standby of this process has connected. An error is the reason to refuse it.
  Status on_standby(ShardId theirs, Outbox& out);
  void on_standby_lost(Outbox& out) { source_.on_standby_lost(out); }
  Status on_replicated(const Replicated& replicated, Outbox& out) {
    return source_.on_replicated(replicated, out);
  }

 private:
  Result<std::vector<SavedBlock>> kept_blocks() const;

  const Role role_;
  const ShardId id_;
  KeptParts& kept_;
  Shard shard_;
  ReplicaSource source_;
  std::optional<Plan> plan_;
  std::optional<Version> replicated_;  // the newest version that the standby was given
};

}  // namespace drover

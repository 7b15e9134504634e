// ShardServer: what the process of a shard does around its Shard, as a state machine without I/O.
// It starts the shard from nothing, from a checkpoint or from memory; it keeps every version where
// there is a standby, and holds the news of a step back until the standby has what the step made.
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
  // `kept` outlives this: it is what remains of a process when a run restarts.
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

  // The coordinator's plan: this process serves. Returns whether the shard has started. If not, the
  // caller reads its blocks from plan.resume_from and calls start(). An error: what the plan wants
  // to continue from is not in memory here. REQUIRES: !has_plan().
  Result<bool> on_plan(const Plan& plan);
  // `saved`: this shard's blocks, as they are in the checkpoint.
  void start(const std::vector<SavedBlock>& saved);

  // REQUIRES: shard().check_decision() took it.
  void on_decision(const Decision& decision, TimePoint now, Outbox& out);

  // A message of the shard's for the coordinator. It may have to wait, and those after it too.
  void send_to_coordinator(Outgoing message, Outbox& out) {
    source_.send_to_coordinator(std::move(message), out);
  }
  // Versions that the shard has come to since the last call: the standby's copies go to `out`, and
  // the parts of checkpoints that are due are returned. Call after every call of shard()'s.
  std::vector<CheckpointPart> take_checkpoints(Outbox& out);

  // A process that stands by for this one has connected. An error is the reason to refuse it.
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
};

}  // namespace drover

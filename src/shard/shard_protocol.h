// ShardProtocol: how gradients become versions of a shard's blocks. A run uses SyncProtocol or
// AsyncProtocol for all its steps; the plan decides which.
//
// The shard validates frames and keeps connections, members and offers. The protocol judges pushes,
// closes steps and serves pulls. This base class has the parts common to both protocols.
#pragma once

#include <optional>

#include "shard/shard_state.h"
#include "wire/outbox.h"

namespace drover {

class ShardProtocol {
 public:
  // `state` must outlive this, and have its plan and blocks.
  explicit ShardProtocol(ShardState& state) : state_(state) {}
  virtual ~ShardProtocol() = default;
  ShardProtocol(const ShardProtocol&) = delete;
  ShardProtocol& operator=(const ShardProtocol&) = delete;

  // A worker of this run has connected, for the first time or again, or is lost.
  virtual void on_joined(WorkerId worker) = 0;
  virtual void on_lost(WorkerId worker) = 0;
  // Members were added or removed. Closes nothing; the caller calls settle_all().
  virtual void on_members_changed(TimePoint now, Outbox& out) = 0;
  virtual void on_decision(const Decision& decision, TimePoint now, Outbox& out) = 0;

  // An offer of a gradient, or, with a payload, the gradient itself. An error: the worker has too
  // many open offers of this block.
  virtual Status on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) = 0;
  // A granted gradient. Without a payload: the worker has overwritten it.
  virtual void on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) = 0;
  // A worker pulls parameters. `received`: the number of blocks that it has received so far.
  virtual void on_pull(WorkerId worker, uint32_t received) = 0;
  // A worker will push nothing more for steps before `version`.
  virtual void on_done(WorkerId worker, Version version, TimePoint now, Outbox& out) = 0;

  // How to close the blocks that are held. Protocols that hold none ignore it.
  virtual void on_release(const Release&, TimePoint, Outbox&) {}

  // See Shard.
  virtual std::optional<TimePoint> wake_at() const = 0;
  virtual void on_time(TimePoint now, Outbox& out) = 0;
  // Closes all blocks that need not wait any longer.
  virtual void settle_all(TimePoint now, Outbox& out) = 0;
  virtual size_t pending() const = 0;

  // Queues an offer, which is granted when it fits the window. An error: see on_offer().
  Status enqueue(const Push& push, Outbox& out);

  // Answers the pull, if its parameters are available. Returns whether the pull is complete.
  bool serve(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out);
  // Serves all waiting pulls.
  void serve_all(TimePoint now, Outbox& out);

  // All blocks have come to the version of the open step; some may be further on. What they saved
  // of it is handed out as a checkpoint.
  void gather_checkpoint();

 protected:
  // Like serve(), for a worker's pull of parameters. REQUIRES: hosted.block.started().
  virtual bool serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out) = 0;
  // The open step is closing. Adds the protocol's part to its summary.
  virtual void on_step_closing(StepClosed& closed) = 0;

  void serve_waiting(HostedBlock& hosted, TimePoint now, Outbox& out);
  static void answer(const Push& push, Answer answer, Outbox& out);
  // Notes the push that was just answered if it was an outlier.
  void note_outlier(const Push& push, Step step, Answer answer);
  // A block has reached a new version: closes the open step if this was the last block.
  void close_step_if_done(TimePoint now, Outbox& out);

  ShardState& state_;

 private:
  uint64_t digest() const;
};

}  // namespace drover

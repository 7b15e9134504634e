// ShardProtocol: how the gradients that come to a shard become versions of its blocks. A run has
// one for all its steps: SyncProtocol or AsyncProtocol, chosen when the plan arrives.
//
// The shard validates what comes and keeps connections, members and offers; the protocol judges
// pushes, closes steps and serves pulls. What both protocols have in common is here.
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

  // A worker of this run has connected, for the first time or again; or is lost.
  virtual void on_joined(WorkerId worker) = 0;
  virtual void on_lost(WorkerId worker) = 0;
  // Members were added or removed. Closes nothing yet.
  virtual void on_members_changed(TimePoint now, Outbox& out) = 0;
  virtual void on_decision(const Decision& decision, TimePoint now, Outbox& out) = 0;

  // An offer of a gradient; with a payload, the gradient itself. An error: the worker offers the
  // same block too often.
  virtual Status on_offer(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) = 0;
  // A gradient that was granted. Without a payload: the worker has overwritten it.
  virtual void on_block(const Push& push, ConstBuffer payload, TimePoint now, Outbox& out) = 0;
  // A worker asks for parameters, and says how many blocks have come before.
  virtual void on_pull(WorkerId worker, uint32_t came) = 0;
  // A worker pushes nothing more for steps before `version`.
  virtual void on_done(WorkerId worker, Version version, TimePoint now, Outbox& out) = 0;

  // See Shard.
  virtual std::optional<TimePoint> wake_at() const = 0;
  virtual void on_time(TimePoint now, Outbox& out) = 0;
  // Closes all blocks that have what they wait for.
  virtual void settle_all(TimePoint now, Outbox& out) = 0;
  virtual size_t pending() const = 0;

  // The bytes of an offer are to be granted when there is room for them. An error: see on_offer().
  Status enqueue(const Push& push, Outbox& out);

  // Sends what the pull waits for, if it can be had. Returns whether that is done with.
  bool serve(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out);
  // The same for all pulls that wait.
  void serve_all(TimePoint now, Outbox& out);

 protected:
  // The same of a worker's pull of parameters. REQUIRES: hosted.block.started().
  virtual bool serve_worker(HostedBlock& hosted, const Pull& pull, TimePoint now, Outbox& out) = 0;
  // Adds to the summary of the open step what only the protocol knows. It closes then.
  virtual void on_step_closing(StepClosed& closed) = 0;

  void serve_waiting(HostedBlock& hosted, TimePoint now, Outbox& out);
  static void answer(const Push& push, Answer answer, Outbox& out);
  // What the block says of the push that it has taken in or refused.
  void note_outlier(const Push& push, Step step, Answer answer);
  // A block has come to another version: closes the open step if it was the last one.
  void close_step_if_done(TimePoint now, Outbox& out);

  ShardState& state_;

 private:
  void gather_checkpoint();
  uint64_t digest() const;
};

}  // namespace drover

// Shard: the process that owns some blocks of the parameters, as a state machine without I/O.
//
// It is notified of what arrived, from which peer and when; it answers with frames to send. It
// holds no socket, clock or thread, so that a live process and a simulated one drive the same code.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/float_buffer.h"
#include "core/time.h"
#include "shard/shard_protocol.h"
#include "shard/shard_state.h"
#include "shard/startup.h"
#include "wire/outbox.h"

namespace drover {

class Shard {
 public:
  // Bytes of gradients that may be under way to this shard at once.
  static constexpr size_t kWindowBytes = 1 << 20;

  // Parameters are published in buffers that `published` makes, if it is given.
  explicit Shard(ShardId id, size_t window_bytes = kWindowBytes,
                 BufferPool::Make published = nullptr);

  // What to keep and how to learn. Comes once, before any worker.
  void on_plan(const Plan& plan);
  bool has_plan() const { return protocol_ != nullptr; }

  // The run continues from a checkpoint: what it has of this shard's blocks, one for each, in any
  // order. Comes after the plan, which names the version, and before any worker.
  void restore(const std::vector<SavedBlock>& saved);

  // A worker, or the evaluator, is connected on both lanes; for the first time, or again after it
  // was lost. It contributes from the decision on that names it.
  void on_joined(WorkerId worker, Outbox& out);
  void on_lost(WorkerId worker, TimePoint now, Outbox& out);

  // An error means that the coordinator breaks the protocol: this shard has not all its parameters,
  // the step cannot be decided now, or the cutoff is zero. REQUIRES: has_plan().
  Status check_decision(const Decision& decision) const;
  // How long to wait in a step; the first one opens step 0. REQUIRES: check_decision() took it.
  void on_decision(const Decision& decision, TimePoint now, Outbox& out);

  // When on_time() should be called, if nothing else happens before: a time limit ends then. May
  // change with every call of the others.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now, Outbox& out);

  // A version that the plan wants kept (a checkpoint is due, or there is a standby), all blocks as
  // they were: the next such, oldest first, since the last call. Look after every call of the
  // others.
  std::optional<CheckpointPart> take_checkpoint();

  // How many floats the payload of a frame from `worker` has, before any memory is given to it. An
  // error means that the peer breaks the protocol; its connection should be closed.
  Result<size_t> payload_floats(WorkerId worker, const FrameHeader& header) const;

  // A block of this shard. REQUIRES: payload_floats() took a frame for it.
  const Block& block(BlockId id) const { return find(id)->block.block(); }

  // A whole frame. `payload` has the size that payload_floats() returns, or is null if that is 0.
  Status on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                  Outbox& out);

  // The learning rate from step `rate.from` on, in place of the schedule's; see
  // RateTable::on_rate(). REQUIRES: has_plan().
  Status on_rate(WorkerId worker, const LearningRate& rate);

  // Bytes of gradients that may be under way to this shard from now on.
  void set_window(size_t bytes) { state_.offers.set_window(bytes); }

  // Whether the run has such a worker, a member now or not. REQUIRES: has_plan().
  bool knows(WorkerId worker) const { return state_.knows(worker); }
  // How much is kept for later, in entries.
  size_t pending() const;
  // All steps are done.
  bool finished() const { return has_plan() && state_.finished(); }
  BufferPool& pool() { return pool_; }

 private:
  // A frame that is in order: how many floats follow, and, of an offer or a gradient, the block.
  struct Admitted {
    size_t floats = 0;
    HostedBlock* hosted = nullptr;
  };

  HostedBlock* find(BlockId id) const;
  Result<Admitted> admit(WorkerId worker, const FrameHeader& header) const;
  Result<Admitted> admit_push(WorkerId worker, const FrameHeader& header) const;
  bool update_members(const std::vector<WorkerId>& alive);
  Status on_push(const Push& push, FrameType type, ConstBuffer payload, TimePoint now, Outbox& out);
  Status on_initial(const Push& push, FrameType type, ConstBuffer payload, Outbox& out);
  void on_pull(WorkerId worker, const FrameHeader& header, TimePoint now, Outbox& out);
  void request_initial(Outbox& out);
  void grant_offers(Outbox& out);

  BufferPool pool_;
  BufferPool published_;
  ShardState state_;
  Startup startup_;
  std::set<WorkerId> connected_;
  std::unique_ptr<ShardProtocol> protocol_;  // null: there is no plan yet
};

}  // namespace drover

// Shard: owns some blocks of the parameters, as a state machine without I/O.
//
// Its inputs are frames with their sender and time of arrival; its outputs are frames to send. It
// has no socket, clock or thread, so that live and simulated processes run the same code.
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
  // The most bytes of gradients in flight to this shard.
  static constexpr size_t kWindowBytes = 1 << 20;

  // `published`: makes the buffers in which parameters are published; null: the default.
  explicit Shard(ShardId id, size_t window_bytes = kWindowBytes,
                 BufferPool::Make published = nullptr);

  // The blocks of this shard and the learning rules. Called once, before any worker joins.
  void on_plan(const Plan& plan);
  bool has_plan() const { return protocol_ != nullptr; }

  // The run continues from a checkpoint. `saved`: this shard's blocks in it, in any order. Called
  // after on_plan(), which names the version, and before any worker joins.
  void restore(const std::vector<SavedBlock>& saved);

  // A worker, or the evaluator, has connected on both lanes, for the first time or after a loss. It
  // contributes from the first decision on that includes it.
  void on_joined(WorkerId worker, Outbox& out);
  void on_lost(WorkerId worker, TimePoint now, Outbox& out);

  // An error means that the coordinator breaks the protocol: this shard does not have all its
  // parameters, the step cannot be decided now, or the cutoff is zero. REQUIRES: has_plan().
  Status check_decision(const Decision& decision) const;
  // How long to wait in a step. The first decision opens step 0. REQUIRES: check_decision() is ok.
  void on_decision(const Decision& decision, TimePoint now, Outbox& out);

  // When to call on_time(), if there is no other input before: a time limit ends then. May change
  // with every call of another method.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now, Outbox& out);

  // The next saved version of all blocks, oldest first, for a checkpoint or for the standby;
  // nothing if there is none. Call after every call of another method.
  std::optional<CheckpointPart> take_checkpoint();

  // The number of floats in the payload of a frame from `worker`, before memory is allocated for
  // it. An error means that the peer breaks the protocol; the caller closes its connection.
  Result<size_t> payload_floats(WorkerId worker, const FrameHeader& header) const;

  // A block of this shard. REQUIRES: payload_floats() has accepted a frame for it.
  const Block& block(BlockId id) const { return find(id)->block.block(); }

  // A frame has arrived. `payload` has the size that payload_floats() returns, or is null for 0.
  Status on_frame(WorkerId worker, const FrameHeader& header, ConstBuffer payload, TimePoint now,
                  Outbox& out);

  // The learning rate from step `rate.from` on, in place of the schedule's; see
  // RateTable::on_rate(). REQUIRES: has_plan().
  Status on_rate(WorkerId worker, const LearningRate& rate);

  // How to close the blocks that are held; see HeldBlocks. REQUIRES: has_plan().
  void on_release(const Release& release, TimePoint now, Outbox& out);
  // The run has so many steps, and not as many as the plan says. An error: more are done.
  // REQUIRES: has_plan().
  Status on_length(Step steps);

  // Sets the most bytes of gradients in flight to this shard.
  void set_window(size_t bytes) { state_.offers.set_window(bytes); }

  // Whether the run has a worker with this index, a member or not. REQUIRES: has_plan().
  bool knows(WorkerId worker) const { return state_.knows(worker); }
  // The number of entries kept for later.
  size_t pending() const;
  // All steps are done.
  bool finished() const { return has_plan() && state_.finished(); }
  BufferPool& pool() { return pool_; }

 private:
  // A valid frame.
  struct Admitted {
    size_t floats = 0;              // in its payload
    HostedBlock* hosted = nullptr;  // of an offer or a gradient
  };

  HostedBlock* find(BlockId id) const;
  Result<Admitted> admit(WorkerId worker, const FrameHeader& header) const;
  Result<Admitted> admit_push(WorkerId worker, const FrameHeader& header) const;
  Status check_flags(WorkerId worker, const FrameHeader& header) const;
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
  std::unique_ptr<ShardProtocol> protocol_;  // null before on_plan()
};

}  // namespace drover

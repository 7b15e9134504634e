// WorkerMachine: the worker's side of the protocol, as a state machine without I/O.
//
// It pulls a version of the parameters, offers blocks of the gradient when they are ready, sends
// blocks that shards grant, and tracks which steps are no longer wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/float_buffer.h"
#include "core/layout.h"
#include "core/result.h"
#include "core/time.h"
#include "wire/outbox.h"
#include "worker/parameter_pull.h"
#include "worker/partial_pull.h"

namespace drover {

class WorkerMachine {
 public:
  // `parameters` and `gradient` are flat buffers that the machine sends from. It writes to
  // `parameters` only with `partial`.
  // `pull`: kTogether, or kMixed for asynchronous runs; step() is then this worker's own number of
  // its gradient. `partial`: the settings of partial pulls. Blocks that arrive during a gradient go
  // to another buffer first, so that parameters do not change while a gradient is computed on them.
  WorkerMachine(WorkerId worker, const BlockPlan& plan, SharedBuffer parameters,
                ConstBuffer gradient, PullKind pull = PullKind::kTogether,
                std::optional<PartialPull::Settings> partial = {});

  // Sets the number type in which gradients are sent.
  void set_number_type(NumberType type) { number_type_ = type; }

  // A shard requests the initial parameters of its blocks. REQUIRES: `parameters` has them.
  void on_want_initial(ShardId shard, Outbox& out);

  // The training loop is done with its step, or has none yet: requests the parameters of the next
  // step that is wanted. Shards may still request blocks of the gradient.
  void begin_pull(TimePoint now, Outbox& out);

  // Like begin_pull(), while the step is still being computed. The parameter buffer is overwritten
  // from now on, so the training loop must use a copy. begin_pull() then only reports that the
  // worker is done with the step. REQUIRES: begin_step() was called; the run is synchronous and
  // without partial pulls.
  void pull_ahead(Outbox& out);

  // Whether the blocks of version step() are in the parameter buffer: all, or with partial pulls
  // enough.
  bool ready() const { return partial_ ? partial_->complete() : !ahead_ && pull_.complete(); }
  Step step() const {
    if (ahead_) return now_->step;
    return partial_ ? partial_->version() : pull_.version();
  }

  // When to call on_time(), after which ready() may be true; nullopt: never.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now);

  // The training loop starts step(). From now on both buffers belong to this step.
  // REQUIRES: ready(), and no block of the gradient buffer is still being sent.
  void begin_step();
  // The same with another buffer for the gradient. The previous gradient can still be sent as long
  // as its buffer is not changed.
  void begin_step(ConstBuffer gradient);

  // Whether a gradient for `step` would still be used, as far as this worker knows.
  bool wanted(Step step) const { return step >= stop_before_; }

  // A tensor of the gradient for step() is final: offers its blocks, with `flags` of kPushFlags.
  // With partial pulls, a shard that has not answered two gradients gets no offers until it catches
  // up. REQUIRES: begin_step() was called. With kNothingFlag the tensor shares no block with
  // others. With kHoldFlag expect_norm() was called in this step.
  void offer(uint32_t tensor, uint32_t samples, Outbox& out, uint16_t flags = 0);

  // The gradients of these tensors will be offered with kHoldFlag: from here on norm() is about
  // them. REQUIRES: begin_step() was called.
  void expect_norm(const std::vector<uint32_t>& tensors);
  // Their mean gradient's, over all shards; nothing if it is not known yet.
  std::optional<GradientNorm> norm() const;
  // Some of them were not taken, because the step closes without them.
  bool held_in_vain() const { return held_in_vain_; }
  void on_norm(ShardId shard, const GradientNorm& norm);
  // Says to the shards how to close what is held.
  void release(double scale, bool used, Outbox& out) const;
  size_t bytes_of(BlockId id) const { return plan_.blocks[id].length * sizeof(float); }

  // Whether arriving parameters answer the last pull. If not, they must not be written to the
  // parameter buffer, and on_frame() ignores them.
  bool expects(const FrameHeader& header) const {
    return partial_ ? partial_->is_newer(header) : pull_.expects(header);
  }

  // The block to which the payload of kParameters belongs. An error means that the shard violates
  // the protocol.
  Result<Block> destination(ShardId shard, const FrameHeader& header) const;
  // The buffer to write the payload to. REQUIRES: expects(header).
  const SharedBuffer& begin_receiving(const FrameHeader& header);
  // A frame from a shard. REQUIRES: a payload is already at its destination in that buffer.
  Status on_frame(ShardId shard, const FrameHeader& header, TimePoint now, Outbox& out);
  // The stop order, from a shard or the coordinator: gradients up to `step` are not wanted.
  void on_stop(Step step);
  void on_pull_share(const PullShare& share);
  // With partial pulls, adds the freshness of the parameters of step() to a report.
  void describe_pull(TimePoint now, StepReport& report) const;

 private:
  void send_block(const Block& block, Step step, FrameType type, Outbox& out) const;
  void offer_block(const Block& block, Step step, Outbox& out) const;
  void on_parameters(const FrameHeader& header, TimePoint now, Outbox& out);
  void copy_received(BlockId id);

  struct Gradient {
    Step step = 0;
    ConstBuffer buffer;
    uint32_t samples = 0;
    std::vector<uint16_t> flags = {};  // by block: of its push; empty: none has any
  };
  uint16_t flags_of(BlockId id, Step step) const;
  // What a push with these flags says of how many blocks are held.
  Version held_on(ShardId shard, uint16_t flags) const {
    return (flags & kHoldFlag) != 0 ? held_[shard] : 0;
  }

  const Gradient* find_gradient(Step step) const;

  const WorkerId worker_;
  const BlockPlan plan_;
  const SharedBuffer parameters_;
  const ConstBuffer gradient_;
  NumberType number_type_ = NumberType::kFloat32;
  ParameterPull pull_;
  std::optional<PartialPull> partial_;
  SharedBuffer received_;                                  // partial_: blocks that arrive early
  std::vector<std::optional<Version>> received_versions_;  // by block: version in received_
  PartialPull::Freshness freshness_;                       // of the parameters of step()
  bool began_ = false;                                     // the first pull was made
  bool pulling_ = false;                                   // parameters may be overwritten
  bool ahead_ = false;                                     // pull_ahead() was called in this step
  std::optional<Gradient> now_;                            // the current or last step
  std::optional<Gradient> before_;   // the step before, if its buffer is unchanged
  uint32_t samples_ = 0;             // samples of the last gradient
  std::vector<uint32_t> ready_;      // number of final tensors of the last gradient, by block
  std::vector<size_t> unanswered_;   // partial_: unanswered offers, by shard
  std::vector<size_t> blocks_on_;    // number of blocks, by shard
  std::vector<uint32_t> held_;       // number of held blocks in this step, by shard
  std::vector<GradientNorm> norms_;  // the last one of each shard
  bool held_in_vain_ = false;
  Step stop_before_ = 0;  // the first step that is still wanted
};

}  // namespace drover

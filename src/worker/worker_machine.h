// WorkerMachine: the worker's side of a step, as a state machine without I/O.
//
// Pulls a version of the parameters, offers blocks of the gradient as they become ready, sends what
// shards grant, and knows what is no longer wanted.
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
  // `parameters` and `gradient` are flat buffers as long as the machine lives; the machine sends
  // from them, and writes only where not all blocks are waited for, and then only parameters.
  // `pull`: kTogether, or kMixed where workers do not wait for a step together; step() is then this
  // worker's own number for its gradient.
  // `partial`: not all blocks are waited for. What comes goes to another buffer first, so that
  // nothing is written to while a gradient is computed on it.
  WorkerMachine(WorkerId worker, const BlockPlan& plan, SharedBuffer parameters,
                ConstBuffer gradient, PullKind pull = PullKind::kTogether,
                std::optional<PartialPull::Settings> partial = {});

  // How the numbers of gradients travel.
  void set_number_type(NumberType type) { number_type_ = type; }

  // A shard wants the initial parameters of its blocks. REQUIRES: `parameters` holds them.
  void on_want_initial(ShardId shard, Outbox& out);

  // The training loop is done with its step (or has none yet): asks for the parameters of the next
  // one that counts. The gradient stays sendable: shards may only now come to take it.
  void begin_pull(TimePoint now, Outbox& out);

  // The same while the step is still computed, by a loop that has its parameters elsewhere: the
  // buffer is written to from here on. begin_pull() then only says that nothing more is owed.
  // REQUIRES: begin_step() was called; all blocks are waited for, and workers wait for each other.
  void pull_ahead(Outbox& out);

  // All blocks of version step() are in the parameter buffer, or as many as are waited for.
  bool ready() const { return partial_ ? partial_->complete() : !ahead_ && pull_.complete(); }
  Step step() const {
    if (ahead_) return now_->step;
    return partial_ ? partial_->version() : pull_.version();
  }

  // When on_time() should be called, if nothing else happens before: ready() may be true then.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now);

  // The training loop starts on step(): from here on neither buffer belongs to an earlier step.
  // REQUIRES: ready(), and nothing of the gradient buffer is still being sent.
  void begin_step();
  // The same with another buffer for the gradient. While that of the step before is left alone, it
  // can still be sent to shards that come to take it only now.
  void begin_step(ConstBuffer gradient);

  // Whether a gradient for `step` would still be used, as far as is known here.
  bool wanted(Step step) const { return step >= stop_before_; }

  // A tensor of the gradient for step() is final. A shard that has not answered two gradients is
  // not offered a third: it is behind, and has time to catch up. REQUIRES: begin_step() was called.
  void offer(uint32_t tensor, uint32_t samples, Outbox& out);
  size_t bytes_of(BlockId id) const { return plan_.blocks[id].length * sizeof(float); }

  // Whether parameters that arrive answer the last pull. If not they must not touch the parameter
  // buffer, and on_frame() ignores them.
  bool expects(const FrameHeader& header) const {
    return partial_ ? partial_->is_newer(header) : pull_.expects(header);
  }

  // Where the payload of kParameters goes; an error means that the shard breaks the protocol.
  Result<Block> destination(ShardId shard, const FrameHeader& header) const;
  // In which buffer: it is about to be written there. REQUIRES: expects(header).
  const SharedBuffer& begin_receiving(const FrameHeader& header);
  // A frame from a shard; its payload, if any, is already where the two said.
  Status on_frame(ShardId shard, const FrameHeader& header, TimePoint now, Outbox& out);
  // The order to stop, from whoever knows: nothing up to `step` is wanted.
  void on_stop(Step step);
  void on_pull_share(const PullShare& share);
  // Adds what the gradient of step() was computed on, where not all blocks are waited for.
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
  };
  const Gradient* find_gradient(Step step) const;

  const WorkerId worker_;
  const BlockPlan plan_;
  const SharedBuffer parameters_;
  const ConstBuffer gradient_;
  NumberType number_type_ = NumberType::kFloat32;
  ParameterPull pull_;
  std::optional<PartialPull> partial_;
  SharedBuffer received_;                                  // with partial_: what comes
  std::vector<std::optional<Version>> received_versions_;  // by block, of what is kept there
  PartialPull::Freshness freshness_;                       // of step()
  bool began_ = false;                                     // a first pull was made
  bool pulling_ = false;                                   // parameters may be written to
  bool ahead_ = false;              // they are pulled, though the step is still computed
  std::optional<Gradient> now_;     // the step that is, or was last, computed
  std::optional<Gradient> before_;  // the one before, if its buffer is left alone
  uint32_t samples_ = 0;            // behind the last gradient
  std::vector<uint32_t> ready_;     // of it, by block: tensors
  // With partial_, by shard: offers that it has not answered, and its blocks.
  std::vector<size_t> unanswered_;
  std::vector<size_t> blocks_on_;
  Step stop_before_ = 0;  // the least step still wanted
};

}  // namespace drover

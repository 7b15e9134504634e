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
#include "wire/outbox.h"
#include "worker/parameter_pull.h"

namespace drover {

class WorkerMachine {
 public:
  // `parameters` and `gradient` are flat buffers as long as the machine lives; the machine sends
  // from them and never writes.
  // `pull`: kTogether, or kMixed where workers do not wait for a step together; step() is then this
  // worker's own number for its gradient.
  WorkerMachine(WorkerId worker, const BlockPlan& plan, ConstBuffer parameters,
                ConstBuffer gradient, PullKind pull = PullKind::kTogether);

  // How the numbers of gradients travel.
  void send_numbers_as(NumberType type) { number_type_ = type; }

  // A shard wants the initial parameters of its blocks. REQUIRES: `parameters` holds them.
  void on_want_initial(ShardId shard, Outbox& out);

  // The training loop is done with its step (or has none yet): asks for the parameters of the next
  // one that counts. The gradient stays sendable: shards may only now come to take it.
  void begin_pull(Outbox& out);

  // All blocks of version step() are in the parameter buffer.
  bool ready() const { return pull_.complete(); }
  Step step() const { return pull_.version(); }

  // The training loop starts on step(): from here on neither buffer belongs to an earlier step.
  // REQUIRES: ready(), and nothing of the gradient buffer is still being sent.
  void begin_step();

  // Whether a gradient for `step` would still be used, as far as is known here.
  bool wanted(Step step) const { return step >= stop_before_; }

  // A tensor of the gradient for step() is final. REQUIRES: begin_step() was called.
  void offer(uint32_t tensor, uint32_t samples, Outbox& out);

  // Whether parameters that arrive answer the last pull. If not they must not touch the parameter
  // buffer, and on_frame() ignores them.
  bool expects(const FrameHeader& header) const { return pull_.expects(header); }

  // Where the payload of kParameters goes; an error means that the shard breaks the protocol.
  Result<Block> destination(ShardId shard, const FrameHeader& header) const;
  // A frame from a shard; its payload, if any, is already where destination() said.
  Status on_frame(ShardId shard, const FrameHeader& header, Outbox& out);
  // The order to stop, from whoever knows: nothing up to `step` is wanted.
  void on_stop(Step step);

 private:
  void send_block(const Block& block, Step step, FrameType type, Outbox& out) const;
  void offer_block(const Block& block, Step step, Outbox& out) const;

  const WorkerId worker_;
  const BlockPlan plan_;
  const ConstBuffer parameters_;
  const ConstBuffer gradient_;
  NumberType number_type_ = NumberType::kFloat32;
  ParameterPull pull_;
  bool began_ = false;                 // a first pull was made
  bool pulling_ = false;               // parameters may be written to
  std::optional<Step> gradient_step_;  // the step that the gradient buffer belongs to
  uint32_t samples_ = 0;               // behind that gradient
  Step stop_before_ = 0;               // the least step still wanted
};

}  // namespace drover

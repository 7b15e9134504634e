// AveragePull: fetches the parameters to evaluate into a buffer of their own, for a worker that
// evaluates between two steps. Without I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/float_buffer.h"
#include "core/layout.h"
#include "core/result.h"
#include "wire/outbox.h"
#include "worker/parameter_pull.h"

namespace drover {

class AveragePull {
 public:
  // Parameters of so many floats; a buffer is made when they are first asked for.
  explicit AveragePull(size_t floats) : floats_(floats) {}

  // The shards are other ones, or have forgotten what they were asked.
  void reset() { pull_.reset(); }

  // Asks for the newest parameters to evaluate before `step`, of which there are some every `every`
  // steps (0: none). False: there are none yet.
  bool begin(WorkerId worker, const BlockPlan& blocks, Step step, Step every, Outbox& out);

  // Whether a frame answers the last request. REQUIRES: header.block is in the plan.
  bool expects(const FrameHeader& header) const { return pull_ && pull_->expects(header); }
  // Where the parameters of a block go. REQUIRES: expects() their header.
  std::span<float> destination(const Block& block) {
    return buffer_->span().subspan(block.offset, block.length);
  }
  // Parameters that are in their destination, or the word that a shard no longer has them. An error
  // means that the shard breaks the protocol.
  Status on_frame(const FrameHeader& header, Outbox& out);

  bool complete() const { return pull_ && pull_->complete(); }
  // REQUIRES: complete(), here and below.
  Version version() const { return pull_->version(); }
  std::span<float> values() { return buffer_->span(); }

 private:
  const size_t floats_;
  size_t blocks_ = 0;
  SharedBuffer buffer_;
  std::optional<ParameterPull> pull_;
};

}  // namespace drover

// AveragePull: fetches the parameters to evaluate into a separate buffer, for a worker that
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
  // `floats`: the number of parameters. The buffer is allocated by the first begin().
  explicit AveragePull(size_t floats) : floats_(floats) {}

  // The worker has reconnected: a pull under way will not be answered.
  void reset() { pull_.reset(); }

  // Requests the newest parameters to evaluate before `step`. Shards keep some every `every` steps
  // (0: never). False: there are none yet.
  bool begin(WorkerId worker, const BlockPlan& blocks, Step step, Step every, Outbox& out);

  // Whether a frame answers the last request. REQUIRES: header.block is in the plan.
  bool expects(const FrameHeader& header) const { return pull_ && pull_->expects(header); }
  // Where to write the parameters of a block. REQUIRES: expects() their header.
  std::span<float> destination(const Block& block) {
    return buffer_->span().subspan(block.offset, block.length);
  }
  // Parameters are in their destination (kParameters), or a shard no longer has them (kGone). An
  // error means that the shard breaks the protocol.
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

// ShardBlock: one block's life on its shard. Collects the gradients of the open step, closes,
// publishes the next version.
//
// Version v of the parameters is what step v starts from, so the block's version is also the number
// of the step it is collecting for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/float_buffer.h"
#include "core/layout.h"
#include "server/gradient_sum.h"
#include "server/membership.h"
#include "server/optimizer.h"
#include "wire/control.h"
#include "wire/header.h"

namespace drover {

class ShardBlock {
 public:
  ShardBlock(const Block& block, const Plan& plan, BufferPool* pool);

  const Block& block() const { return block_; }
  bool started() const { return parameters_ != nullptr; }
  Version version() const { return version_; }
  // The newest version; never changes once published.
  const ConstBuffer& parameters() const { return parameters_; }

  // Version 0. REQUIRES: not started.
  void start(SharedBuffer initial, const Membership& members);

  // What would be answered if `worker` pushed for `step` now; lets a shard refuse before the bytes
  // move.
  Answer judge(Step step, WorkerId worker) const;

  // Takes a push in if judge() accepts it and its values are finite. REQUIRES: buffer has
  // block().length floats.
  Answer push(Step step, WorkerId worker, uint32_t samples, SharedBuffer gradient,
              const Membership& members);

  // Somebody left: nothing they have not pushed is waited for.
  void on_members_changed(const Membership& members);

  // Whether the open step has what it waits for: `cutoff` contributions of workers alive, or an
  // answer to everybody alive.
  bool complete(uint32_t cutoff) const;

  // Applies the optimiser to what has arrived and opens the next step.
  void close(double learning_rate, const Membership& members);

  // What to evaluate of version `version`, if it is kept (the last two that are due are); null if
  // not.
  ConstBuffer snapshot(Version version) const;
  // The newest version of which a snapshot is kept; 0 if there is none.
  Version newest_snapshot() const;

  const GradientSum& sum() const { return sum_; }
  bool finished() const { return version_ >= steps_; }

 private:
  void keep_snapshot();
  bool snapshot_due() const;

  const Block block_;
  const Step steps_;
  const Step evaluate_every_;
  BufferPool* pool_;
  Version version_ = 0;
  ConstBuffer parameters_;
  GradientSum sum_;
  BlockOptimizer optimizer_;
  std::vector<bool> answered_;  // by worker, in the open step
  uint32_t missing_ = 0;        // alive and not answered
  uint32_t contributed_ = 0;    // alive and in the sum

  struct Snapshot {
    Version version = 0;
    ConstBuffer values;
  };
  // Two, so that an evaluator that has begun to fetch one from the first shard still finds it on
  // the last.
  std::array<Snapshot, 2> snapshots_;
};

}  // namespace drover

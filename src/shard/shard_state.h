// ShardState: the state of a shard that both protocols share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "core/checkpoint_part.h"
#include "core/ids.h"
#include "core/membership.h"
#include "shard/offer_queue.h"
#include "shard/rate_table.h"
#include "shard/shard_block.h"
#include "shard/step_tally.h"
#include "wire/limits.h"

namespace drover {

// A worker, or the evaluator, waits for a block in `version` or newer, or for the snapshot of
// exactly that version.
struct Pull {
  WorkerId worker = 0;
  uint64_t request = 0;  // the puller's own number of the request
  Version version = 0;
  bool snapshot = false;
};

struct HostedBlock {
  ShardBlock block;
  size_t index = 0;  // among the blocks of its shard
  std::vector<Pull> pulls;
};

// A worker's gradient for a block of this shard, or its offer of one.
struct Push {
  WorkerId worker = 0;
  Step step = 0;
  uint32_t samples = 0;
  HostedBlock& hosted;
  uint16_t flags = 0;  // of kPushFlags
  uint32_t holds = 0;  // with kHoldFlag: how many blocks of this shard its worker holds
};

// The most steps by which decisions, pushes and blocks may be ahead.
struct AheadLimits {
  static constexpr Step kNone = std::numeric_limits<Step>::max();

  Step decision = 0;       // a decision, ahead of the shard's open step
  Step push = 0;           // a push, ahead of the step that its block collects for
  Step undecided = kNone;  // a block, ahead of the newest decision

  static AheadLimits of(const Plan& plan) {
    AheadLimits limits;
    if (plan.asynchronous) limits.push = kNone;
    if (plan.partial_pull) limits = {kDecidedAheadMax, kPushedAheadMax, kUndecidedMax};
    // Bounds the number of versions kept for a restart.
    if (plan.standby) limits.undecided = std::min(limits.undecided, Step{kKeptAheadMax});
    return limits;
  }
};

struct ShardState {
  ShardState(ShardId shard, size_t window_bytes) : id(shard), offers(window_bytes) {}

  const ShardId id;
  Plan plan;
  AheadLimits limits;
  bool open = false;  // step 0 has begun
  Membership members;
  std::map<BlockId, std::unique_ptr<HostedBlock>> blocks;
  OfferQueue offers;
  RateTable rates;
  StepTally tally;
  std::deque<CheckpointPart> checkpoints;  // see Shard::take_checkpoint()

  // Whether the run has a worker with this index, a member or not.
  bool knows(WorkerId worker) const { return worker < members.size(); }
  bool finished() const { return tally.step() >= plan.steps; }
};

}  // namespace drover

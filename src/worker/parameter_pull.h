// ParameterPull: gathers all blocks from the shards.
//
// Shards publish block by block and each at its own moment, so a pull may first bring a mixture of
// versions. It is complete when all blocks are of one version; until then the shards that are
// behind are asked again. Where workers do not wait for a step together a mixture will do.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "wire/outbox.h"

namespace drover {

// Where a shard's frames go.
inline Address to_shard(ShardId shard, Lane lane) { return {Role::kShard, shard, lane}; }

enum class PullKind : uint8_t {
  kTogether,  // all blocks in one version, that wanted or a newer one
  kMixed,     // each block as it is, when the puller's gradients before `version` are in it
  kSnapshot,  // the parameters to evaluate, of exactly the version wanted
};

class ParameterPull {
 public:
  ParameterPull(WorkerId worker, const BlockPlan& plan, PullKind kind);

  // Asks all shards for `version`. With kMixed that is the puller's own number for the gradient
  // that it is going to make; who begins with 0 goes on from the newest version that it finds.
  // `not_done`: the puller is still computing a gradient for the step before, until it says that it
  // is done; not with kMixed.
  void begin(Version version, Outbox& out, bool not_done = false);
  // What is asked from now on is asked by one who owes nothing.
  void mark_done() { not_done_ = false; }

  // Whether a frame answers the last request to its shard. What answers an earlier one is not
  // wanted: it may be older than what is already here. REQUIRES: header.block is in the plan.
  bool expects(const FrameHeader& header) const;

  // A block has arrived. REQUIRES: expects(header).
  void on_parameters(const FrameHeader& header, Outbox& out);
  // A shard no longer has the snapshot; asks all for the one it named. REQUIRES: expects(header).
  void on_gone(const FrameHeader& header, Outbox& out);

  // Whether all blocks are here in version(), or, with kMixed, in any.
  bool complete() const { return missing_ == 0; }
  Version version() const { return wanted_; }

 private:
  void ask(ShardId shard, Outbox& out);
  void count_missing();

  const WorkerId worker_;
  const PullKind kind_;
  std::vector<ShardId> shard_of_;    // by block
  std::vector<uint32_t> blocks_on_;  // by shard
  std::vector<uint64_t> request_;    // the number of the last one, by shard
  std::vector<int64_t> have_;        // version by block; -1: not yet in answer to that
  Version wanted_ = 0;
  bool not_done_ = false;
  bool adopts_ = false;  // kMixed: what comes says which number to go on from
  size_t missing_;
};

}  // namespace drover

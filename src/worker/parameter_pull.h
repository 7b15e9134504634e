// ParameterPull: gathers one version of all blocks from the shards.
//
// Shards publish block by block and each at its own moment, so a pull may first bring a mixture of
// versions. It is complete when all blocks are of one version; until then the shards that are
// behind are asked again.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "wire/outbox.h"

namespace drover {

// Where a shard's frames go.
inline Address to_shard(ShardId shard, Lane lane) { return {Role::kShard, shard, lane}; }

class ParameterPull {
 public:
  // `snapshots`: asks for the parameters to evaluate, of exactly the version wanted.
  ParameterPull(WorkerId worker, const BlockPlan& plan, bool snapshots);

  // Asks all shards for `version` or newer (or, for snapshots, for exactly it).
  void begin(Version version, Outbox& out);

  // Whether a frame answers the last request to its shard. What answers an earlier one is not
  // wanted: it may be older than what is already here. REQUIRES: header.block is in the plan.
  bool expects(const FrameHeader& header) const;

  // A block has arrived. REQUIRES: expects(header).
  void on_parameters(const FrameHeader& header, Outbox& out);
  // A shard no longer has the snapshot; asks all for the one it named. REQUIRES: expects(header).
  void on_gone(const FrameHeader& header, Outbox& out);

  // Whether all blocks are here in version().
  bool complete() const { return missing_ == 0; }
  Version version() const { return wanted_; }

 private:
  void ask(ShardId shard, Outbox& out);
  void count_missing();

  const WorkerId worker_;
  const bool snapshots_;
  std::vector<ShardId> shard_of_;    // by block
  std::vector<uint32_t> blocks_on_;  // by shard
  std::vector<uint64_t> request_;    // the number of the last one, by shard
  std::vector<int64_t> have_;        // version by block; -1: not yet in answer to that
  Version wanted_ = 0;
  size_t missing_;
};

}  // namespace drover

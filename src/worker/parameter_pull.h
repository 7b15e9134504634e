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

  // A block has arrived.
  void on_parameters(BlockId block, Version version, Outbox& out);
  // A shard no longer has the snapshot; asks all for the one it named.
  void on_gone(Version newest, Outbox& out);

  // Whether all blocks are here in version().
  bool complete() const { return missing_ == 0; }
  Version version() const { return wanted_; }

 private:
  void ask(ShardId shard, Outbox& out) const;
  void count_missing();

  const WorkerId worker_;
  const bool snapshots_;
  std::vector<ShardId> shard_of_;    // by block
  std::vector<uint32_t> blocks_on_;  // by shard
  std::vector<int64_t> have_;        // version by block; -1: none of this pull
  Version wanted_ = 0;
  size_t missing_;
};

}  // namespace drover

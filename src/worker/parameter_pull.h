// ParameterPull: pulls all blocks of the parameters from the shards.
//
// Shards publish blocks one by one and at different times, so a pull may first receive a mixture of
// versions. It is complete when all blocks have the same version; until then it repeats the request
// to the shards that are behind. In asynchronous runs a mixture is accepted.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "wire/outbox.h"

namespace drover {

// The address of a shard.
inline Address to_shard(ShardId shard, Lane lane) { return {Role::kShard, shard, lane}; }

enum class PullKind : uint8_t {
  kTogether,  // all blocks in the same version: the wanted one or a newer one
  kMixed,  // each block in its current version, once it has the puller's gradients before `version`
  kSnapshot,  // the parameters for evaluation, of exactly the wanted version
};

class ParameterPull {
 public:
  ParameterPull(WorkerId worker, const BlockPlan& plan, PullKind kind);

  // Requests `version` from all shards. With kMixed, `version` is the puller's own number of its
  // next gradient; if it is 0, the puller continues from the newest version that it receives.
  // `not_done`: the worker still computes a gradient for the step before, until mark_done(); not
  // with kMixed.
  void begin(Version version, Outbox& out, bool not_done = false);
  // The worker is done with the step before. Later requests say so.
  void mark_done() { not_done_ = false; }

  // Whether a frame answers the last request to its shard. Answers to earlier requests are ignored,
  // since they may be older than blocks received since. REQUIRES: header.block is in the plan.
  bool expects(const FrameHeader& header) const;

  // A block arrived. REQUIRES: expects(header).
  void on_parameters(const FrameHeader& header, Outbox& out);
  // A shard does not have the snapshot any more: requests the one that it named from all shards.
  // REQUIRES: expects(header).
  void on_gone(const FrameHeader& header, Outbox& out);

  // Whether all blocks have arrived in version(), or with kMixed in any version.
  bool complete() const { return missing_ == 0; }
  Version version() const { return wanted_; }

 private:
  void ask(ShardId shard, Outbox& out);
  void count_missing();

  const WorkerId worker_;
  const PullKind kind_;
  std::vector<ShardId> shard_of_;    // by block
  std::vector<uint32_t> blocks_on_;  // by shard
  std::vector<uint64_t> request_;    // number of the last request, by shard
  std::vector<int64_t> have_;        // version by block; -1: not received for the last request
  Version wanted_ = 0;
  bool not_done_ = false;
  bool adopts_ = false;  // kMixed: continue from the newest version received
  size_t missing_;
};

}  // namespace drover

// PartialPull: gathers a share of the blocks from the shards, and goes on without the others.
//
// Blocks that have not come keep the version that they have; late ones are recognised by their
// version, whichever request they answer. It is complete when all blocks are in the version wanted
// or a newer one; or when the share is, and a grace has passed since. The very first pull waits
// for all. The step to take is the newest version that the share has reached.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/layout.h"
#include "core/time.h"
#include "wire/outbox.h"

namespace drover {

class PartialPull {
 public:
  struct Settings {
    double share = 1.0;  // of the blocks, above 0 and at most 1
    Duration grace{};    // how much longer the others are waited for
  };
  // What a gradient is computed on.
  struct Freshness {
    uint32_t blocks = 0;
    uint32_t fresh = 0;          // in the version of the step, or a newer one
    uint64_t staleness_sum = 0;  // of the others: steps that each is behind
    uint64_t staleness_max = 0;
  };

  PartialPull(WorkerId worker, const BlockPlan& plan, const Settings& settings);

  // Another share, from the first pull on that wants this step or a later one.
  void on_share(const PullShare& share) { next_share_ = share; }

  // Asks all shards for `version`, or for the newest that has come from anybody.
  void begin(Version version, TimePoint now, Outbox& out);

  // Whether a block is newer than what has come of it.
  bool is_newer(const FrameHeader& header) const;
  // A block has come, and is in the buffer that gradients are computed on. REQUIRES: is_newer().
  void on_parameters(const FrameHeader& header, TimePoint now, Outbox& out);
  // A block has come after a newer version of it, and is of no use.
  void on_old(const FrameHeader& header, bool pulling, Outbox& out);
  // A block has come while a gradient is being computed, and is kept. REQUIRES: is_newer().
  void on_late(const FrameHeader& header, TimePoint now);
  // What was kept is in the buffer now. To be called before begin().
  void use_late(BlockId block, Version version);

  bool complete() const { return complete_; }
  Version version() const { return wanted_; }
  // When the grace ends, if it has begun.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now) { look(now); }

  // For the step version(). REQUIRES: complete().
  Freshness freshness() const;
  // How long each shard has taken to answer since begin(), by shard.
  std::vector<PullResponse> responses(TimePoint now) const;

 private:
  void ask(ShardId shard, Outbox& out);
  void ask_again_if_due(ShardId shard, Outbox& out);
  void note_answered(ShardId shard, TimePoint now);
  void note_came(const FrameHeader& header, TimePoint now);
  void look(TimePoint now);
  size_t needed() const;

  const WorkerId worker_;
  const Duration grace_;
  double share_;
  std::optional<PullShare> next_share_;
  struct OfBlock {
    ShardId shard = 0;
    int64_t held = -1;  // version in the buffer; -1: none yet
    int64_t came = -1;  // the newest that has come
  };
  struct OfShard {
    std::vector<BlockId> blocks;
    uint64_t request = 0;     // the number of the last one
    uint32_t came = 0;        // blocks, ever
    uint32_t told = 0;        // of those, when it was last asked
    uint32_t missing = 0;     // blocks that have not come in the version wanted
    TimePoint answered_at{};  // with the last of them
  };
  std::vector<OfBlock> blocks_;
  std::vector<OfShard> shards_;
  Version wanted_ = 0;
  int64_t newest_ = -1;
  bool complete_ = false;
  TimePoint asked_at_{};
  std::optional<TimePoint> enough_since_;
};

}  // namespace drover

// PartialPull: pulls a share of the blocks from the shards, and continues without the others.
//
// Blocks that have not arrived keep their old version. Late blocks are accepted for any request, by
// their version. A pull is complete when all blocks have the wanted version or a newer one, or when
// the share has and the grace has passed since. The first pull waits for all blocks. The resulting
// step is the newest version that the share has.
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
    double share = 1.0;  // share of the blocks to wait for, above 0 and at most 1
    Duration grace{};    // how much longer to wait for the other blocks
  };
  // Versions of the parameters that a gradient is computed on.
  struct Freshness {
    uint32_t blocks = 0;
    uint32_t fresh = 0;          // blocks in the version of the step, or a newer one
    uint64_t staleness_sum = 0;  // sum over the other blocks of the steps that they are behind
    uint64_t staleness_max = 0;
  };

  PartialPull(WorkerId worker, const BlockPlan& plan, const Settings& settings);

  // Sets another share, for the pull of step share.from and later ones.
  void on_share(const PullShare& share) { next_share_ = share; }

  // Requests `version` from all shards, or the newest version received so far if that is newer.
  void begin(Version version, TimePoint now, Outbox& out);

  // Whether a block is newer than all versions of it received so far.
  bool is_newer(const FrameHeader& header) const;
  // A block arrived in the buffer that gradients are computed on. REQUIRES: is_newer().
  void on_parameters(const FrameHeader& header, TimePoint now, Outbox& out);
  // A block arrived after a newer version of it, and is ignored.
  void on_old(const FrameHeader& header, bool pulling, Outbox& out);
  // A block arrived while a gradient is being computed, and is kept aside. REQUIRES: is_newer().
  void on_late(const FrameHeader& header, TimePoint now);
  // A block that was kept aside is in the buffer now. To be called before begin().
  void use_late(BlockId block, Version version);

  bool complete() const { return complete_; }
  Version version() const { return wanted_; }
  // When the grace ends; nullopt: it has not begun.
  std::optional<TimePoint> wake_at() const;
  void on_time(TimePoint now) { look(now); }

  // Freshness for the step version(). REQUIRES: complete().
  Freshness freshness() const;
  // The time each shard has taken to answer since begin(), by shard.
  std::vector<PullResponse> responses(TimePoint now) const;

 private:
  void ask(ShardId shard, Outbox& out);
  void ask_again_if_due(ShardId shard, Outbox& out);
  void note_answered(ShardId shard, TimePoint now);
  void note_received(const FrameHeader& header, TimePoint now);
  void look(TimePoint now);
  size_t needed() const;

  const WorkerId worker_;
  const Duration grace_;
  double share_;
  std::optional<PullShare> next_share_;
  struct BlockState {
    ShardId shard = 0;
    int64_t held = -1;      // version in the buffer; -1: none yet
    int64_t received = -1;  // newest version received; -1: none yet
  };
  struct ShardState {
    std::vector<BlockId> blocks;
    uint64_t request = 0;     // number of the last request
    uint32_t received = 0;    // blocks received since the beginning
    uint32_t reported = 0;    // value of `received` in the last request
    uint32_t missing = 0;     // blocks not received in the wanted version
    TimePoint answered_at{};  // when the last of them arrived
  };
  std::vector<BlockState> blocks_;
  std::vector<ShardState> shards_;
  Version wanted_ = 0;
  int64_t newest_ = -1;
  bool complete_ = false;
  TimePoint asked_at_{};
  std::optional<TimePoint> enough_since_;  // since when the share has arrived
};

}  // namespace drover

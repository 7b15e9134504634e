#include "worker/partial_pull.h"

#include <algorithm>

#include "core/block_share.h"
#include "core/check.h"
#include "worker/parameter_pull.h"

namespace drover {

PartialPull::PartialPull(WorkerId worker, const BlockPlan& plan, const Settings& settings)
    : worker_(worker),
      grace_(settings.grace),
      share_(settings.share),
      blocks_(plan.blocks.size()),
      shards_(plan.shards) {
  DROVER_CHECK(share_ > 0.0 && share_ <= 1.0);
  for (const Block& block : plan.blocks) {
    blocks_[block.id].shard = block.shard;
    shards_[block.shard].blocks.push_back(block.id);
  }
}

size_t PartialPull::needed() const {
  return blocks_needed(share_, static_cast<uint32_t>(blocks_.size()));
}

void PartialPull::begin(Version version, TimePoint now, Outbox& out) {
  wanted_ = std::max(version, static_cast<Version>(std::max<int64_t>(newest_, 0)));
  if (next_share_ && wanted_ >= next_share_->from) {
    share_ = next_share_->share;
    next_share_.reset();
  }
  asked_at_ = now;
  enough_since_.reset();
  for (ShardId shard = 0; shard < shards_.size(); ++shard) {
    note_answered(shard, now);
    if (!shards_[shard].blocks.empty()) ask(shard, out);
  }
  look(now);
}

void PartialPull::ask(ShardId shard, Outbox& out) {
  ShardState& asked = shards_[shard];
  asked.reported = asked.received;
  out.push_back({to_shard(shard, Lane::kControl), Frame{{.type = FrameType::kPull,
                                                         .step = ++asked.request,
                                                         .version = wanted_,
                                                         .worker = worker_,
                                                         .place = asked.received},
                                                        {}}});
}

// Repeats the request if the shard may wait for a report of received blocks: it limits the blocks
// that it sends without such a report.
void PartialPull::ask_again_if_due(ShardId shard, Outbox& out) {
  const ShardState& asked = shards_[shard];
  if (asked.missing > 0 && asked.received - asked.reported >= asked.blocks.size()) ask(shard, out);
}

// Counts the missing blocks of the wanted version.
void PartialPull::note_answered(ShardId shard, TimePoint now) {
  ShardState& asked = shards_[shard];
  asked.missing = 0;
  for (const BlockId block : asked.blocks)
    asked.missing += blocks_[block].received < static_cast<int64_t>(wanted_) ? 1 : 0;
  asked.answered_at = now;
}

bool PartialPull::is_newer(const FrameHeader& header) const {
  DROVER_CHECK(header.block < blocks_.size());
  return static_cast<int64_t>(header.version) > blocks_[header.block].received;
}

void PartialPull::note_received(const FrameHeader& header, TimePoint now) {
  BlockState& block = blocks_[header.block];
  ShardState& shard = shards_[block.shard];
  const auto wanted = static_cast<int64_t>(wanted_);
  const bool was_missing = block.received < wanted;
  block.received = static_cast<int64_t>(header.version);
  newest_ = std::max(newest_, block.received);
  ++shard.received;
  if (!was_missing || block.received < wanted) return;
  --shard.missing;
  shard.answered_at = now;
}

void PartialPull::on_parameters(const FrameHeader& header, TimePoint now, Outbox& out) {
  DROVER_CHECK(is_newer(header));
  note_received(header, now);
  BlockState& block = blocks_[header.block];
  block.held = block.received;
  const auto newest = static_cast<Version>(newest_);
  if (newest > wanted_) {
    // A step has closed without this worker, and its gradient would be late there. Request the next
    // version from the shards that are behind, so that they need not wait for its gradient.
    wanted_ = newest;
    enough_since_.reset();
    for (ShardId shard = 0; shard < shards_.size(); ++shard) {
      note_answered(shard, now);
      if (shards_[shard].missing > 0) ask(shard, out);
    }
  } else {
    ask_again_if_due(block.shard, out);
  }
  look(now);
}

void PartialPull::on_old(const FrameHeader& header, bool pulling, Outbox& out) {
  const ShardId shard = blocks_[header.block].shard;
  ++shards_[shard].received;
  if (pulling) ask_again_if_due(shard, out);
}

void PartialPull::on_late(const FrameHeader& header, TimePoint now) {
  DROVER_CHECK(is_newer(header));
  note_received(header, now);
}

void PartialPull::use_late(BlockId block, Version version) {
  blocks_[block].held = static_cast<int64_t>(version);
}

void PartialPull::look(TimePoint now) {
  complete_ = false;
  const auto wanted = static_cast<int64_t>(wanted_);
  size_t fresh = 0;
  bool some_missing = false;
  for (const BlockState& block : blocks_) {
    fresh += block.held >= wanted ? 1 : 0;
    some_missing = some_missing || block.held < 0;
  }
  if (fresh < needed() || some_missing) return;
  if (!enough_since_) enough_since_ = now;
  if (fresh < blocks_.size() && now < *enough_since_ + grace_) return;
  complete_ = true;
}

std::optional<TimePoint> PartialPull::wake_at() const {
  if (complete_ || !enough_since_) return std::nullopt;
  return *enough_since_ + grace_;
}

PartialPull::Freshness PartialPull::freshness() const {
  Freshness freshness{.blocks = static_cast<uint32_t>(blocks_.size())};
  for (const BlockState& block : blocks_) {
    if (block.held >= static_cast<int64_t>(wanted_)) {
      ++freshness.fresh;
      continue;
    }
    const Version behind = wanted_ - static_cast<Version>(block.held);
    freshness.staleness_sum += behind;
    freshness.staleness_max = std::max<uint64_t>(freshness.staleness_max, behind);
  }
  return freshness;
}

std::vector<PullResponse> PartialPull::responses(TimePoint now) const {
  std::vector<PullResponse> responses;
  for (const ShardState& shard : shards_) {
    const bool complete = shard.missing == 0;
    responses.push_back({(complete ? shard.answered_at : now) - asked_at_, complete});
  }
  return responses;
}

}  // namespace drover

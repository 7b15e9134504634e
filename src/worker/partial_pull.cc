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
  OfShard& asked = shards_[shard];
  asked.told = asked.came;
  out.push_back({to_shard(shard, Lane::kControl), Frame{{.type = FrameType::kPull,
                                                         .step = ++asked.request,
                                                         .version = wanted_,
                                                         .worker = worker_,
                                                         .place = asked.came},
                                                        {}}});
}

// A shard sends only so much that it does not know to have come.
void PartialPull::ask_again_if_due(ShardId shard, Outbox& out) {
  const OfShard& asked = shards_[shard];
  if (asked.missing > 0 && asked.came - asked.told >= asked.blocks.size()) ask(shard, out);
}

// Counts what is missing in the version wanted.
void PartialPull::note_answered(ShardId shard, TimePoint now) {
  OfShard& asked = shards_[shard];
  asked.missing = 0;
  for (const BlockId block : asked.blocks)
    asked.missing += blocks_[block].came < static_cast<int64_t>(wanted_) ? 1 : 0;
  asked.answered_at = now;
}

bool PartialPull::is_newer(const FrameHeader& header) const {
  DROVER_CHECK(header.block < blocks_.size());
  return static_cast<int64_t>(header.version) > blocks_[header.block].came;
}

void PartialPull::note_came(const FrameHeader& header, TimePoint now) {
  OfBlock& block = blocks_[header.block];
  OfShard& shard = shards_[block.shard];
  const auto wanted = static_cast<int64_t>(wanted_);
  const bool was_missing = block.came < wanted;
  block.came = static_cast<int64_t>(header.version);
  newest_ = std::max(newest_, block.came);
  ++shard.came;
  if (!was_missing || block.came < wanted) return;
  --shard.missing;
  shard.answered_at = now;
}

void PartialPull::on_parameters(const FrameHeader& header, TimePoint now, Outbox& out) {
  DROVER_CHECK(is_newer(header));
  note_came(header, now);
  OfBlock& block = blocks_[header.block];
  block.held = block.came;
  const auto newest = static_cast<Version>(newest_);
  if (newest > wanted_) {
    // A step has closed without us, and what we would push for it is late there: whoever is behind
    // is asked for the next one, and need not wait for us.
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
  ++shards_[shard].came;
  if (pulling) ask_again_if_due(shard, out);
}

void PartialPull::on_late(const FrameHeader& header, TimePoint now) {
  DROVER_CHECK(is_newer(header));
  note_came(header, now);
}

void PartialPull::use_late(BlockId block, Version version) {
  blocks_[block].held = static_cast<int64_t>(version);
}

void PartialPull::look(TimePoint now) {
  complete_ = false;
  const auto wanted = static_cast<int64_t>(wanted_);
  size_t fresh = 0;
  bool some_missing = false;
  for (const OfBlock& block : blocks_) {
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
  for (const OfBlock& block : blocks_) {
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
  for (const OfShard& shard : shards_) {
    const bool came = shard.missing == 0;
    responses.push_back({(came ? shard.answered_at : now) - asked_at_, came});
  }
  return responses;
}

}  // namespace drover

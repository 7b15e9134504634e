#include "worker/parameter_pull.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

ParameterPull::ParameterPull(WorkerId worker, const BlockPlan& plan, bool snapshots)
    : worker_(worker),
      snapshots_(snapshots),
      blocks_on_(plan.shards, 0),
      have_(plan.blocks.size(), -1),
      missing_(plan.blocks.size()) {
  for (const Block& block : plan.blocks) {
    shard_of_.push_back(block.shard);
    ++blocks_on_[block.shard];
  }
}

void ParameterPull::begin(Version version, Outbox& out) {
  wanted_ = version;
  std::fill(have_.begin(), have_.end(), -1);
  missing_ = have_.size();
  for (ShardId shard = 0; shard < blocks_on_.size(); ++shard) {
    if (blocks_on_[shard] > 0) ask(shard, out);
  }
}

void ParameterPull::on_parameters(BlockId block, Version version, Outbox& out) {
  DROVER_CHECK(block < have_.size());
  if (version < wanted_) return;  // the answer to an earlier request
  have_[block] = static_cast<int64_t>(version);
  if (version > wanted_) {
    // Somebody is ahead, and everybody has to get there. Whoever may still answer with less is
    // asked again: an older request could be met by a version that is no longer of use.
    wanted_ = version;
    std::vector<bool> behind(blocks_on_.size(), false);
    for (BlockId each = 0; each < have_.size(); ++each) {
      if (have_[each] != static_cast<int64_t>(version)) behind[shard_of_[each]] = true;
    }
    for (ShardId shard = 0; shard < behind.size(); ++shard) {
      if (behind[shard]) ask(shard, out);
    }
  }
  count_missing();
}

void ParameterPull::on_gone(Version newest, Outbox& out) {
  if (newest > wanted_) begin(newest, out);
}

void ParameterPull::count_missing() {
  missing_ = static_cast<size_t>(std::count_if(have_.begin(), have_.end(), [&](int64_t version) {
    return version != static_cast<int64_t>(wanted_);
  }));
}

void ParameterPull::ask(ShardId shard, Outbox& out) const {
  out.push_back({to_shard(shard, Lane::kControl),
                 Frame{{.type = FrameType::kPull,
                        .flags = static_cast<uint16_t>(snapshots_ ? kSnapshotFlag : 0),
                        .version = wanted_,
                        .worker = worker_},
                       {}}});
}

}  // namespace drover

#include "worker/parameter_pull.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

ParameterPull::ParameterPull(WorkerId worker, const BlockPlan& plan, PullKind kind)
    : worker_(worker),
      kind_(kind),
      blocks_on_(plan.shards, 0),
      request_(plan.shards, 0),
      have_(plan.blocks.size(), -1),
      missing_(plan.blocks.size()) {
  for (const Block& block : plan.blocks) {
    shard_of_.push_back(block.shard);
    ++blocks_on_[block.shard];
  }
}

void ParameterPull::begin(Version version, Outbox& out, bool not_done) {
  wanted_ = version;
  not_done_ = not_done;
  adopts_ = kind_ == PullKind::kMixed && version == 0;
  missing_ = have_.size();
  for (ShardId shard = 0; shard < blocks_on_.size(); ++shard) {
    if (blocks_on_[shard] > 0) ask(shard, out);
  }
}

bool ParameterPull::expects(const FrameHeader& header) const {
  DROVER_CHECK(header.block < have_.size());
  return header.step == request_[shard_of_[header.block]];
}

void ParameterPull::on_parameters(const FrameHeader& header, Outbox& out) {
  DROVER_CHECK(expects(header));
  have_[header.block] = static_cast<int64_t>(header.version);
  if (kind_ == PullKind::kMixed) {
    if (adopts_) wanted_ = std::max(wanted_, header.version);
    missing_ = static_cast<size_t>(std::count(have_.begin(), have_.end(), -1));
    return;
  }
  if (header.version > wanted_) {
    // A shard is ahead, and all blocks must have its version: repeat the request to the others.
    wanted_ = header.version;
    std::vector<bool> behind(blocks_on_.size(), false);
    for (BlockId each = 0; each < have_.size(); ++each) {
      if (have_[each] != static_cast<int64_t>(wanted_)) behind[shard_of_[each]] = true;
    }
    for (ShardId shard = 0; shard < behind.size(); ++shard) {
      if (behind[shard]) ask(shard, out);
    }
  }
  count_missing();
}

void ParameterPull::on_gone(const FrameHeader& header, Outbox& out) {
  DROVER_CHECK(expects(header));
  if (header.version > wanted_) begin(header.version, out);
}

void ParameterPull::count_missing() {
  missing_ = static_cast<size_t>(std::count_if(have_.begin(), have_.end(), [&](int64_t version) {
    return version != static_cast<int64_t>(wanted_);
  }));
}

void ParameterPull::ask(ShardId shard, Outbox& out) {
  ++request_[shard];
  for (BlockId block = 0; block < have_.size(); ++block) {
    if (shard_of_[block] == shard) have_[block] = -1;
  }
  const int flags =
      (kind_ == PullKind::kSnapshot ? kSnapshotFlag : 0) | (not_done_ ? kNotDoneFlag : 0);
  out.push_back({to_shard(shard, Lane::kControl), Frame{{.type = FrameType::kPull,
                                                         .flags = static_cast<uint16_t>(flags),
                                                         .step = request_[shard],
                                                         .version = wanted_,
                                                         .worker = worker_},
                                                        {}}});
}

}  // namespace drover

#include "coordinator/early_closings.h"

#include <algorithm>
#include <utility>

namespace drover {

EarlyClosings::EarlyClosings(const std::vector<ShardId>& shards, Step first, size_t most)
    : most_(most) {
  for (const ShardId shard : shards) next_[shard] = first;
}

EarlyClosings::Turn EarlyClosings::accept(const ShardClosing& closing, Step open) {
  const auto next = next_.find(closing.shard);
  const bool ahead = closing.closed.step > open;
  if (next == next_.end() || closing.closed.step != next->second ||
      (ahead && early_.size() >= most_))
    return Turn::kWrong;
  ++next->second;
  if (!ahead) return Turn::kNow;
  early_.push_back(closing);
  return Turn::kEarly;
}

std::optional<ShardClosing> EarlyClosings::take(Step open) {
  const auto found = std::find_if(early_.begin(), early_.end(), [&](const ShardClosing& each) {
    return each.closed.step <= open;
  });
  if (found == early_.end()) return std::nullopt;
  ShardClosing taken = std::move(*found);
  early_.erase(found);
  return taken;
}

}  // namespace drover

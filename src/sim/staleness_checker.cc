#include "sim/staleness_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {

void StalenessChecker::on_answer(ShardId shard, WorkerId worker, Step step, size_t blocks) {
  const Key key{shard, worker};
  if (++parts_[key][step] < blocks) return;
  parts_[key].erase(step);
  clocks_[key] = std::max(clocks_[key], step + 1);
}

void StalenessChecker::on_lost(ShardId shard, WorkerId worker) {
  parts_.erase({shard, worker});
  clocks_.erase({shard, worker});
}

void StalenessChecker::restart() {
  parts_.clear();
  clocks_.clear();
}

std::string StalenessChecker::on_parameters(ShardId shard, WorkerId worker,
                                            const ExpectedMembers::AtShard& there,
                                            uint64_t bound) const {
  const auto begins = there.asked.find(worker);
  if (begins == there.asked.end()) return {};
  for (const auto& [member, since] : there.members) {
    const auto clock = clocks_.find({shard, member});
    if (clock == clocks_.end() || begins->second <= clock->second + bound) continue;
    return fmt::format("worker {} begins its gradient {} on shard {}, but worker {} is at {}",
                       worker, begins->second, shard, member, clock->second);
  }
  return {};
}

}  // namespace drover

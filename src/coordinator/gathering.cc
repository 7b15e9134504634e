#include "coordinator/gathering.h"

#include "core/peer.h"

namespace drover {

std::optional<Duration> Gathering::overdue(const Present& present, TimePoint now) {
  if (present.shards_ready && !shards_ready_since_) shards_ready_since_ = now;
  if (present.shards_ready && present.worker_ready && !worker_ready_since_)
    worker_ready_since_ = now;
  const Wait wait = wait_for(present);
  if (now - wait.since < wait.patience) return std::nullopt;
  return wait.patience;
}

Gathering::Wait Gathering::wait_for(const Present& present) const {
  if (worker_ready_since_ && settings_.return_timeout)
    return {*worker_ready_since_, *settings_.return_timeout};
  if (!settings_.reads_checkpoint) return {started_, settings_.join_timeout};
  if (present.shards_ready) return {*shards_ready_since_, settings_.join_timeout};
  return {started_, present.worker_joined ? std::max(settings_.join_timeout, kReadingMax)
                                          : settings_.join_timeout};
}

std::string missing_with_shards(const std::vector<ShardId>& shards, uint32_t workers,
                                uint32_t workers_at_start) {
  std::string names;
  for (const ShardId shard : shards)
    names += (names.empty() ? "" : ", ") + peer_name(Role::kShard, shard);
  if (names.empty() || workers == 0) return names;
  return names + ", " + std::to_string(workers) + " of " + std::to_string(workers_at_start) +
         " workers";
}

}  // namespace drover

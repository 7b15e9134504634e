// StandbyCover: whether a standby has all steps that the coordinator knows of, so that no step may
// be lost with its shard. A shard reports a step to the coordinator only when its standby has the
// version that the step made. So a standby that once had the newest version stays up to date.
#pragma once

#include <set>

#include "core/ids.h"

namespace drover {

class StandbyCover {
 public:
  // A new incarnation of the coordinator continues from `first`: all standbys connect again.
  void restart(Step first) {
    first_ = first;
    covered_.clear();
  }
  // A shard receives the report that its standby has this version, while the coordinator knows of
  // `open` closed steps.
  void on_replicated(ShardId shard, Version version, Step open) {
    if (version >= open) covered_.insert(shard);
  }
  // The connection between the two has ended.
  void on_disconnected(ShardId shard) { covered_.erase(shard); }

  // Whether the shard can be lost without losing any of the `open` closed steps. False if no step
  // has closed since `first`.
  bool covers(ShardId shard, Step open) const { return open > first_ && covered_.contains(shard); }

 private:
  Step first_ = 0;
  std::set<ShardId> covered_;
};

}  // namespace drover

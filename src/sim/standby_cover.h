// StandbyCover: whether a standby has everything that the coordinator knows of, so that the loss of
// its shard may not cost a step.
//
// A shard tells the coordinator of a step only when its standby has what the step made. So once a
// standby has had the newest version that is known, it always has.
#pragma once

#include <set>

#include "core/ids.h"

namespace drover {

class StandbyCover {
 public:
  // Another incarnation of the coordinator, which continues from `first`: all connect anew.
  void restart(Step first) {
    first_ = first;
    covered_.clear();
  }
  // A shard hears that its standby has this version, while `open` steps are known to have closed.
  void on_replicated(ShardId shard, Version version, Step open) {
    if (version >= open) covered_.insert(shard);
  }
  // The connection between the two has ended.
  void on_disconnected(ShardId shard) { covered_.erase(shard); }

  // Whether the shard can be lost without losing any of the `open` steps. (Of none there is nothing
  // that a standby could have.)
  bool covers(ShardId shard, Step open) const { return open > first_ && covered_.contains(shard); }

 private:
  Step first_ = 0;
  std::set<ShardId> covered_;
};

}  // namespace drover

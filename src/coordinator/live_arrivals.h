// LiveArrivals: who has arrived in the step that is open, as shards tell it while it happens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

class LiveArrivals {
 public:
  // A step opens, in which these are counted on (ascending). A gradient is here when so many shards
  // have it.
  void open(std::span<const WorkerId> counted_on, uint32_t shards);

  // News from a shard that opened the step `lead` earlier than everywhere. Whoever is not counted
  // on is passed over, as is what was told before.
  void on_arrived(ShardId shard, const Arrived& arrived, Duration lead);

  // Run-times in seconds, in the order of those counted on; infinity: not here yet.
  std::span<const double> times() const { return times_; }
  uint32_t here() const { return here_; }

 private:
  struct Seen {
    std::vector<ShardId> on;
    Duration run_time{};
  };
  uint32_t shards_ = 0;
  uint32_t here_ = 0;
  std::vector<WorkerId> counted_on_;
  std::vector<Seen> seen_;
  std::vector<double> times_;
};

}  // namespace drover

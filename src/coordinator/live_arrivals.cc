#include "coordinator/live_arrivals.h"

#include <algorithm>
#include <limits>

namespace drover {

void LiveArrivals::open(std::span<const WorkerId> counted_on, uint32_t shards) {
  shards_ = shards;
  here_ = 0;
  counted_on_.assign(counted_on.begin(), counted_on.end());
  seen_.assign(counted_on.size(), {});
  times_.assign(counted_on.size(), std::numeric_limits<double>::infinity());
}

void LiveArrivals::on_arrived(ShardId shard, const Arrived& arrived, Duration lead) {
  for (const StepClosed::Arrival& arrival : arrived.arrivals) {
    const auto place = std::lower_bound(counted_on_.begin(), counted_on_.end(), arrival.worker);
    if (place == counted_on_.end() || *place != arrival.worker) continue;
    const auto i = static_cast<size_t>(place - counted_on_.begin());
    Seen& seen = seen_[i];
    if (std::find(seen.on.begin(), seen.on.end(), shard) != seen.on.end()) continue;
    seen.on.push_back(shard);
    seen.run_time = std::max(seen.run_time, std::max(arrival.run_time - lead, Duration(1)));
    if (seen.on.size() < shards_) continue;
    times_[i] = seconds(seen.run_time);
    ++here_;
  }
}

}  // namespace drover

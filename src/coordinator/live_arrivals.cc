#include "coordinator/live_arrivals.h"

#include <algorithm>
#include <limits>

namespace drover {

void LiveArrivals::open(std::span<const WorkerId> expected, uint32_t shards) {
  shards_ = shards;
  arrived_ = 0;
  expected_.assign(expected.begin(), expected.end());
  reports_.assign(expected.size(), {});
  times_.assign(expected.size(), std::numeric_limits<double>::infinity());
}

void LiveArrivals::on_arrived(ShardId shard, const Arrived& arrived, Duration lead) {
  for (const StepClosed::Arrival& arrival : arrived.arrivals) {
    const auto place = std::lower_bound(expected_.begin(), expected_.end(), arrival.worker);
    if (place == expected_.end() || *place != arrival.worker) continue;
    const auto i = static_cast<size_t>(place - expected_.begin());
    Reports& reports = reports_[i];
    if (std::find(reports.shards.begin(), reports.shards.end(), shard) != reports.shards.end())
      continue;
    reports.shards.push_back(shard);
    reports.run_time = std::max(reports.run_time, std::max(arrival.run_time - lead, Duration(1)));
    if (reports.shards.size() < shards_) continue;
    times_[i] = seconds(reports.run_time);
    ++arrived_;
  }
}

}  // namespace drover

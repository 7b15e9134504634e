// LiveArrivals: which workers have arrived in the open step so far, from the shards' reports.
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
  // A step opens that expects these workers (ascending). A gradient has arrived when `shards`
  // shards have reported it.
  void open(std::span<const WorkerId> expected, uint32_t shards);

  // A report from a shard that opened the step `lead` earlier than the last shard. Workers that are
  // not expected, and repeated reports, are ignored.
  void on_arrived(ShardId shard, const Arrived& arrived, Duration lead);

  // The run-times of the expected workers in seconds. Infinity: not arrived yet.
  std::span<const double> times() const { return times_; }
  // The number of expected workers that have arrived.
  uint32_t arrived() const { return arrived_; }

 private:
  struct Reports {
    std::vector<ShardId> shards;
    Duration run_time{};  // the largest
  };
  uint32_t shards_ = 0;
  uint32_t arrived_ = 0;
  std::vector<WorkerId> expected_;
  std::vector<Reports> reports_;  // these two in the order of expected_
  std::vector<double> times_;
};

}  // namespace drover

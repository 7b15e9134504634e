// StalenessBook: how far each worker is on each shard where there is a bound on that (ssp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/attendance.h"

namespace drover {

class StalenessBook {
 public:
  // A block of a worker's gradient was answered, on a shard that has so many blocks. With its last
  // one the gradient is whole there.
  void on_answer(ShardId shard, WorkerId worker, Step step, size_t blocks);
  void on_lost(ShardId shard, WorkerId worker);
  void restart();

  // A worker is sent parameters. Returns what is wrong; empty: nothing.
  std::string on_parameters(ShardId shard, WorkerId worker, const Attendance::AtShard& there,
                            uint64_t bound) const;

 private:
  using Key = std::pair<ShardId, WorkerId>;
  std::map<Key, std::map<Step, size_t>> parts_;  // blocks answered, by gradient
  std::map<Key, Step> clocks_;                   // the first gradient that is not whole
};

}  // namespace drover

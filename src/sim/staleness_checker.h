// StalenessChecker: tracks the progress of each worker on each shard, and checks the bound of ssp
// on it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/expected_members.h"

namespace drover {

class StalenessChecker {
 public:
  // A block of a worker's gradient was answered, on a shard with `blocks` blocks. With the last one
  // the gradient is complete on this shard.
  void on_answer(ShardId shard, WorkerId worker, Step step, size_t blocks);
  void on_lost(ShardId shard, WorkerId worker);
  void restart();

  // Parameters are sent to a worker. Returns a description of the violation, or an empty string.
  std::string on_parameters(ShardId shard, WorkerId worker, const ExpectedMembers::AtShard& there,
                            uint64_t bound) const;

 private:
  using Key = std::pair<ShardId, WorkerId>;
  std::map<Key, std::map<Step, size_t>> parts_;  // blocks answered, by gradient
  std::map<Key, Step> clocks_;                   // the first gradient that is not complete
};

}  // namespace drover

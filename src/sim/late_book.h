// LateBook: which workers a shard has not waited for, and whether it tells how long they took after
// all, as soon as that is known.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/attendance.h"
#include "wire/control.h"

namespace drover {

class LateBook {
 public:
  // One more block of a worker's gradient for this step was answered.
  void on_answer(ShardId shard, Step step, WorkerId worker) { ++answered_[{shard, step, worker}]; }
  // The worker's connection to the shard has ended.
  void on_lost(ShardId shard, WorkerId worker);
  void restart();

  // A shard with so many blocks has closed a step. Returns what is wrong; empty: nothing.
  std::string on_closed(ShardId shard, const StepClosed& closed, size_t blocks,
                        const Attendance::AtShard& there);

 private:
  using Key = std::tuple<ShardId, Step, WorkerId>;

  std::map<Key, size_t> answered_;  // blocks, since the worker has connected
  std::set<Key> straggling_;        // not waited for, and not told yet
  std::map<Key, uint32_t> told_;    // times
};

}  // namespace drover

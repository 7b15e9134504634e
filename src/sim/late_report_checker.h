// LateReportChecker: tracks the workers that a shard has not waited for, and checks that the shard
// reports their run-times as soon as it knows them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/expected_members.h"
#include "wire/control.h"

namespace drover {

class LateReportChecker {
 public:
  // Another block of a worker's gradient for this step was answered.
  void on_answer(ShardId shard, Step step, WorkerId worker) { ++answered_[{shard, step, worker}]; }
  // The worker's connection to the shard has ended.
  void on_lost(ShardId shard, WorkerId worker);
  void restart();

  // A shard with `blocks` blocks has closed a step. Returns a description of the violation, or an
  // empty string.
  std::string on_closed(ShardId shard, const StepClosed& closed, size_t blocks,
                        const ExpectedMembers::AtShard& there);

 private:
  using Key = std::tuple<ShardId, Step, WorkerId>;

  std::map<Key, size_t> answered_;   // answered blocks since the worker has connected
  std::set<Key> straggling_;         // not waited for, and not reported yet
  std::map<Key, uint32_t> reports_;  // number of reports
};

}  // namespace drover

// ScriptRate: the learning rate that a script has set, and whether shards have received it. Without
// I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "wire/outbox.h"
#include "worker/parameter_pull.h"

namespace drover {

class ScriptRate {
 public:
  // Nothing: the script has set none, and the run's schedule applies.
  const std::optional<double>& value() const { return value_; }

  // Sets the rate and the settings of groups from `step` on, and sends them to all shards.
  void set(double rate, std::vector<GroupSettings> groups, Step step, size_t shards, Outbox& out) {
    value_ = rate;
    groups_ = std::move(groups);
    send(step, shards, out);
  }
  // The worker has reconnected: the shards do not have the rate.
  void on_new_shards() { unsent_ = value_.has_value(); }
  // A step begins: sends the rate if the shards do not have it.
  void begin(Step step, size_t shards, Outbox& out) {
    if (std::exchange(unsent_, false)) send(step, shards, out);
  }

 private:
  void send(Step step, size_t shards, Outbox& out) const {
    for (ShardId shard = 0; shard < shards; ++shard) {
      out.push_back(
          {to_shard(shard, Lane::kControl),
           control_frame(LearningRate{.from = step, .rate = *value_, .groups = groups_})});
    }
  }

  std::optional<double> value_;
  std::vector<GroupSettings> groups_;
  bool unsent_ = false;
};

}  // namespace drover

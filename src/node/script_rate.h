// ScriptRate: the learning rate that a script has set, and whether shards have received it. Without
// I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "wire/outbox.h"
#include "worker/parameter_pull.h"

namespace drover {

class ScriptRate {
 public:
  // Nothing: the script has set none, and the run's schedule applies.
  const std::optional<double>& value() const { return value_; }

  // Sets the rate from `step` on and sends it to all shards.
  void set(double rate, Step step, size_t shards, Outbox& out) {
    value_ = rate;
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
      out.push_back({to_shard(shard, Lane::kControl),
                     control_frame(LearningRate{.from = step, .rate = *value_})});
    }
  }

  std::optional<double> value_;
  bool unsent_ = false;
};

}  // namespace drover

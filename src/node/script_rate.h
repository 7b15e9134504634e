// ScriptRate: the learning rate that a script has chosen, and who has to hear of it. Without I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "wire/outbox.h"
#include "worker/parameter_pull.h"

namespace drover {

class ScriptRate {
 public:
  // Nothing: the run's.
  const std::optional<double>& value() const { return value_; }

  // The rate from `step` on; tells all shards.
  void set(double rate, Step step, size_t shards, Outbox& out) {
    value_ = rate;
    tell(step, shards, out);
  }
  // The shards are other ones, and have not heard it.
  void on_new_shards() { untold_ = value_.has_value(); }
  // A step begins: tells shards that have not heard it.
  void begin(Step step, size_t shards, Outbox& out) {
    if (std::exchange(untold_, false)) tell(step, shards, out);
  }

 private:
  void tell(Step step, size_t shards, Outbox& out) const {
    for (ShardId shard = 0; shard < shards; ++shard) {
      out.push_back({to_shard(shard, Lane::kControl),
                     control_frame(LearningRate{.from = step, .rate = *value_})});
    }
  }

  std::optional<double> value_;
  bool untold_ = false;
};

}  // namespace drover

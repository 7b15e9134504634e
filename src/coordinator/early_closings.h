// EarlyClosings: checks that each shard closes its steps in order, and keeps closings of steps that
// the coordinator has not opened yet. These come from shards that are ahead of the slowest shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

// A shard has closed a step.
struct ShardClosing {
  ShardId shard = 0;
  StepClosed closed = {};
  TimePoint received{};
};

class EarlyClosings {
 public:
  // The most steps that a shard may be ahead of the slowest shard.
  static constexpr size_t kEarlyMax = 64;

  // `shards`: the shards that close steps. `first`: the first step. Keeps up to `most` closings.
  EarlyClosings(const std::vector<ShardId>& shards, Step first, size_t most);

  enum class Turn : uint8_t {
    kWrong,  // breaks the protocol: out of order, too far ahead, or from a shard without blocks
    kNow,    // the step is open or was open before: the caller handles the closing now
    kEarly,  // the closing is kept until take() returns it
  };
  Turn accept(const ShardClosing& closing, Step open);
  // Removes and returns the oldest kept closing of step `open`, if there is one.
  std::optional<ShardClosing> take(Step open);

  size_t size() const { return early_.size(); }

 private:
  const size_t most_;
  std::map<ShardId, Step> next_;  // the step that each shard closes next
  std::vector<ShardClosing> early_;
};

}  // namespace drover

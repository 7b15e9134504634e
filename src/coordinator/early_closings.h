// EarlyClosings: holds each shard to closing its steps one after the other, and keeps the closings
// of steps that are not open at the coordinator yet: a quick shard's news may overtake a slow
// one's.
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

// A shard has closed a step, and when that was heard.
struct ShardClosing {
  ShardId shard = 0;
  StepClosed closed = {};
  TimePoint heard{};
};

class EarlyClosings {
 public:
  // How many steps a shard may be ahead of the slowest shard.
  static constexpr size_t kEarlyMax = 64;

  // `shards`: those that close steps; the first is `first`. Keeps up to `most`.
  EarlyClosings(const std::vector<ShardId>& shards, Step first, size_t most);

  enum class Turn : uint8_t {
    kWrong,  // it breaks the protocol: out of turn, too far ahead, or of a shard that closes none
    kNow,    // its step is open, or was
    kEarly,  // it is kept until take()
  };
  Turn accept(const ShardClosing& closing, Step open);
  // The first that was kept of those whose step is open now.
  std::optional<ShardClosing> take(Step open);

  size_t size() const { return early_.size(); }

 private:
  const size_t most_;
  std::map<ShardId, Step> next_;  // that each shard closes next
  std::vector<ShardClosing> early_;
};

}  // namespace drover

// LoadLimits: how much may be under way or remembered at once, and how long no step may open.
#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"
#include "core/time.h"
#include "sim/witness.h"

namespace drover {

class LoadLimits {
 public:
  struct Settings {
    Duration step{};        // no step may take longer
    size_t events = 0;      // no more may be under way
    size_t kept = 0;        // no more may be remembered by one server
    size_t shard_kept = 0;  // nor by one shard
  };
  explicit LoadLimits(const Settings& settings) : settings_(settings) {}

  // After everything that happened at a moment; `decided`: steps so far. Returns what is wrong;
  // empty: nothing.
  std::string on_load(const Load& load, Step decided, TimePoint now);
  const Load& most() const { return most_; }

 private:
  const Settings settings_;
  Load most_;
  Step decided_ = 0;  // when last looked at
  TimePoint decided_at_{};
  uint64_t events_since_ = 0;
};

}  // namespace drover

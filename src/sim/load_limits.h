// LoadLimits: bounds on pending events and on state that is kept, and on the time between two
// steps.
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
    Duration step{};        // longest time of a step
    size_t events = 0;      // most pending events
    size_t kept = 0;        // most entries kept by one server
    size_t shard_kept = 0;  // most entries kept by one shard
  };
  explicit LoadLimits(const Settings& settings) : settings_(settings) {}

  // To be called after each event. `decided` is the number of decided steps. Returns a description
  // of the violation, or an empty string.
  std::string on_load(const Load& load, Step decided, TimePoint now);
  const Load& most() const { return most_; }

 private:
  const Settings settings_;
  Load most_;
  Step decided_ = 0;  // at the last call
  TimePoint decided_at_{};
  uint64_t events_since_ = 0;
};

}  // namespace drover

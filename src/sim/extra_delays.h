// ExtraDelays: what a scenario adds to the way of some messages: a share of the answers of slow
// shards, and of what a slow coordinator says.
#pragma once

#include <cstdint>

#include "sim/party.h"
#include "sim/scenario.h"
#include "wire/frame.h"

namespace drover {

class ExtraDelays {
 public:
  // The scenario outlives this.
  ExtraDelays(const Scenario& scenario, uint64_t seed) : scenario_(scenario), seed_(seed) {}

  // Of a message that is sent now.
  Duration of(Party from, Party to, const FrameHeader& header);

 private:
  const Scenario& scenario_;
  const uint64_t seed_;
  uint64_t coordinator_said_ = 0;  // messages: the key of their delays
};

}  // namespace drover

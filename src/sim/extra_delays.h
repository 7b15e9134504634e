// ExtraDelays: the delays that a scenario adds to messages: to a share of the answers of slow
// shards, and to a share of the messages of a slow coordinator.
#pragma once

#include <cstdint>

#include "sim/party.h"
#include "sim/scenario.h"
#include "wire/frame.h"

namespace drover {

class ExtraDelays {
 public:
  // REQUIRES: the scenario outlives this object.
  ExtraDelays(const Scenario& scenario, uint64_t seed) : scenario_(scenario), seed_(seed) {}

  // The extra delay of a message that is sent now.
  Duration of(Party from, Party to, const FrameHeader& header);

 private:
  const Scenario& scenario_;
  const uint64_t seed_;
  uint64_t coordinator_messages_ = 0;  // count of messages; keys their random delays
};

}  // namespace drover

// Witness: sees everything that happens in a simulated cluster, and changes nothing.
#pragma once

#include <string>

#include "core/run_record.h"
#include "core/time.h"
#include "sim/network.h"
#include "wire/outbox.h"

namespace drover {

class Witness {
 public:
  virtual ~Witness() = default;
  // A worker's process starts, for the first time or again.
  virtual void on_worker(WorkerId worker) = 0;
  // A state machine has sent this; its floats are what they were at that moment.
  virtual void on_sent(Endpoint from, const Outgoing& message, TimePoint now) = 0;
  // Part of the cluster calls this a breach of the protocol.
  virtual void on_breach(const std::string& what, TimePoint now) = 0;
  // After everything that happened at a moment: how much is waiting, anywhere.
  virtual void on_load(size_t pending, TimePoint now) = 0;
};

}  // namespace drover

// Witness: sees everything that happens in a simulated cluster, and changes nothing.
#pragma once

#include <string>

#include "core/run_record.h"
#include "core/time.h"
#include "sim/network.h"
#include "wire/outbox.h"

namespace drover {

// How much is waiting.
struct Load {
  size_t events = 0;  // in the cluster: messages under way, gradients being computed
  size_t kept = 0;    // in the state machine that remembers the most for later
};

class Witness {
 public:
  virtual ~Witness() = default;
  // A state machine has sent this; its floats are what they were at that moment.
  virtual void on_sent(Party from, const Outgoing& message, TimePoint now) = 0;
  // A server is about to be told this.
  virtual void on_received(Party from, const Outgoing& message, TimePoint now) = 0;
  // The server `at` is about to be told that a worker's connection has ended.
  virtual void on_lost(Party at, WorkerId worker, TimePoint now) = 0;
  // Part of the cluster calls this a breach of the protocol.
  virtual void on_breach(const std::string& what, TimePoint now) = 0;
  // After everything that happened at a moment.
  virtual void on_load(const Load& load, TimePoint now) = 0;
};

}  // namespace drover

// Outbox: what a state machine wants sent, and to whom. Whoever drives the machine sends it.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/frame.h"

namespace drover {

struct Address {
  Role role = Role::kWorker;
  uint32_t index = 0;
  Lane lane = Lane::kControl;
  bool operator==(const Address&) const = default;
};

inline Address to_coordinator() { return {Role::kCoordinator, 0, Lane::kControl}; }

// Workers and the evaluator share one space of ids; see kEvaluator.
inline Address to_worker(WorkerId worker, Lane lane) {
  return worker == kEvaluator ? Address{Role::kEvaluator, 0, lane}
                              : Address{Role::kWorker, worker, lane};
}

struct Outgoing {
  Address to;
  Frame frame;
};

using Outbox = std::vector<Outgoing>;

}  // namespace drover

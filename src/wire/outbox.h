// Outbox: the frames that a state machine sends, with their recipients. Its driver (node or sim)
// sends them.
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

// Workers and the evaluator share one range of ids; see kEvaluator.
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

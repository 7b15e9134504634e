// Names for the processes of a simulated run.
#pragma once

#include <string>

#include "core/peer.h"
#include "sim/network.h"

namespace drover {

inline constexpr Party kCoordinatorEnd{Role::kCoordinator, 0};
inline constexpr Party kEvaluatorEnd{Role::kEvaluator, 0};
constexpr Party worker_end(WorkerId worker) { return {Role::kWorker, worker}; }

inline std::string name_of(Party end) { return peer_name(end.role, end.index); }

// A shard's process, or its standby's.
constexpr bool is_server(Party who) {
  return who.role == Role::kShard || who.role == Role::kStandby;
}

}  // namespace drover

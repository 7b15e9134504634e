// Names and kinds of the processes of a simulated run.
#pragma once

#include <string>

#include "core/peer.h"
#include "sim/network.h"

namespace drover {

inline constexpr Party kCoordinatorParty{Role::kCoordinator, 0};
inline constexpr Party kEvaluatorParty{Role::kEvaluator, 0};
constexpr Party worker_party(WorkerId worker) { return {Role::kWorker, worker}; }

inline std::string name_of(Party end) { return peer_name(end.role, end.index); }

// Whether it is a shard's process, or its standby's.
constexpr bool is_server(Party party) {
  return party.role == Role::kShard || party.role == Role::kStandby;
}

}  // namespace drover

#include "wire/control.h"

namespace drover {

std::string peer_name(Role role, uint32_t index) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kShard:
      return "shard " + std::to_string(index);
    case Role::kWorker:
      return "worker " + std::to_string(index);
    case Role::kEvaluator:
      return "evaluator";
    case Role::kStandby:
      return "standby " + std::to_string(index);
  }
  return "peer";
}

}  // namespace drover

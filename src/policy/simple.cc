#include "policy/simple.h"

namespace drover {

Choice SyncPolicy::decide(const Situation& situation) {
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  return {.cutoff = alive,
          .reason = "sync: waits for all " + std::to_string(alive) + " workers alive"};
}

}  // namespace drover

#include "fuzz/targets.h"

#include <array>

namespace drover::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets = {
      Target{"checkpoint", checkpoint},
      Target{"control", control},
      Target{"coordinator", coordinator},
      Target{"header", header},
      Target{"job", job},
      Target{"model", model},
      Target{"request", request},
      Target{"scenario", scenario},
      Target{"shard", shard},
      Target{"standby", standby},
      Target{"trace", trace},
      Target{"worker", worker},
  };
  return kTargets;
}

}  // namespace drover::fuzz

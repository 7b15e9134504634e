#include "sim/extra_delays.h"

#include "core/random_draw.h"

namespace drover {

Duration ExtraDelays::of(Party from, Party to, const FrameHeader& header) {
  Duration extra{};
  if (header.type == FrameType::kParameters && is_server(from)) {
    for (const SlowShard& slow : scenario_.slow_shards) {
      if (slow.shard && *slow.shard != from.index) continue;
      // All blocks that answer one pull have the same delay.
      const uint64_t bits =
          draw({seed_, static_cast<uint64_t>(Purpose::kFaults), from.index, to.index, header.step});
      if (unit_interval(bits) < slow.share) extra += slow.delay;
    }
  }
  if (const auto& slow = scenario_.slow_coordinator; slow && from == kCoordinatorParty) {
    const uint64_t bits =
        draw({seed_, static_cast<uint64_t>(Purpose::kFaults), coordinator_messages_++});
    if (unit_interval(bits) < slow->share) extra += slow->delay;
  }
  return extra;
}

}  // namespace drover

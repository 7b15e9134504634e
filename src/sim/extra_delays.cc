#include "sim/extra_delays.h"

#include "core/random_draw.h"

namespace drover {

Duration ExtraDelays::of(Party from, Party to, const FrameHeader& header) {
  Duration extra{};
  if (header.type == FrameType::kParameters && is_server(from)) {
    for (const SlowShard& slow : scenario_.slow_shards) {
      if (slow.shard && *slow.shard != from.index) continue;
      // Whole answers are slow: all blocks of a shard for one pull have the same delay.
      const uint64_t luck =
          draw({seed_, static_cast<uint64_t>(Purpose::kFaults), from.index, to.index, header.step});
      if (unit_interval(luck) < slow.share) extra += slow.delay;
    }
  }
  if (const auto& slow = scenario_.slow_coordinator; slow && from == kCoordinatorEnd) {
    const uint64_t luck =
        draw({seed_, static_cast<uint64_t>(Purpose::kFaults), coordinator_said_++});
    if (unit_interval(luck) < slow->share) extra += slow->delay;
  }
  return extra;
}

}  // namespace drover

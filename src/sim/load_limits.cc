#include "sim/load_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover {
namespace {

// A step of the largest hunt case has a few thousand events.
constexpr uint64_t kEventsPerStep = 500'000;

}  // namespace

std::string LoadLimits::on_load(const Load& load, Step decided, TimePoint now) {
  most_.events = std::max(most_.events, load.events);
  most_.kept = std::max(most_.kept, load.kept);
  most_.kept_by_shard = std::max(most_.kept_by_shard, load.kept_by_shard);
  if (decided_ != decided) {
    decided_ = decided;
    decided_at_ = now;
    events_since_ = 0;
  }
  ++events_since_;
  if (load.events > settings_.events)
    return fmt::format("{} events are pending, more than {}", load.events, settings_.events);
  if (load.kept > settings_.kept)
    return fmt::format("a server keeps {} entries, more than {}", load.kept, settings_.kept);
  if (load.kept_by_shard > settings_.shard_kept)
    return fmt::format("a shard keeps {} entries, more than {}", load.kept_by_shard,
                       settings_.shard_kept);
  if (now - decided_at_ <= settings_.step && events_since_ <= kEventsPerStep) return {};
  return fmt::format("no step has opened since {:.1f} s, though events still happen",
                     seconds(decided_at_));
}

}  // namespace drover

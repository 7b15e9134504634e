#include "sim/network.h"

#include <algorithm>
#include <cmath>

#include "core/random_draw.h"

namespace drover {
namespace {

// However bad a link, a packet gets through in the end.
constexpr int kResendsMax = 20;

enum Use : uint64_t { kLoss = 1, kJitter, kReordering, kDuplication };

}  // namespace

bool Network::concerns(const Whom& whom, Party end) const {
  return end.role == Role::kWorker && scenario_.concerns(whom, end.index);
}

LinkLaw Network::law_between(Party from, Party to) const {
  LinkLaw law;
  for (const LinkRule& rule : scenario_.links) {
    const bool everybody = !rule.whom.node && !rule.whom.workers;
    if (everybody || concerns(rule.whom, from) || concerns(rule.whom, to)) law = rule.law;
  }
  return law;
}

TimePoint Network::way_free(TimePoint now, Party from, Party to) const {
  TimePoint free = now;
  for (const Isolated& isolated : partitions_) {
    if (concerns(isolated.whom, from) != concerns(isolated.whom, to))
      free = std::max(free, isolated.until);
  }
  return free;
}

TimePoint Network::arrival(TimePoint now, Party from, Party to, Lane lane, size_t bytes,
                           Duration extra) {
  const LinkLaw law = law_between(from, to);
  const uint64_t frame = frames_++;
  const auto luck = [&](uint64_t use, uint64_t turn) {
    return unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kNetwork), use, frame, turn}));
  };
  std::erase_if(partitions_, [&](const Isolated& each) { return each.until <= now; });

  Duration delay = law.latency + extra;
  if (law.jitter > Duration::zero())
    delay += from_seconds(-seconds(law.jitter) * std::log(1.0 - luck(kJitter, 0)));
  for (int turn = 0; turn < kResendsMax && luck(kLoss, static_cast<uint64_t>(turn)) < law.loss;
       ++turn)
    delay += law.resend;
  if (luck(kReordering, 0) < law.reordering) delay += law.latency;

  TimePoint arrived = way_free(now, from, to) + delay;
  if (law.bytes_per_second > 0.0) {
    // Out through the sender's end, then in through the receiver's, each one frame at a time.
    const double copies = luck(kDuplication, 0) < law.duplication ? 2.0 : 1.0;
    const Duration busy = from_seconds(copies * static_cast<double>(bytes) / law.bytes_per_second);
    TimePoint& out = sends_[from];
    out = std::max(out, way_free(now, from, to)) + busy;
    TimePoint& in = receives_[to];
    in = std::max(in, out - busy + delay) + busy;
    arrived = in;
  }
  TimePoint& last = last_[{from, to, lane}];
  last = std::max(last, arrived);
  return last;
}

}  // namespace drover

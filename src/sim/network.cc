#include "sim/network.h"

#include <algorithm>
#include <cmath>

#include "core/random_draw.h"

namespace drover {
namespace {

// A packet gets through after at most this many resends, however lossy the link.
constexpr int kResendsMax = 20;

enum Use : uint64_t { kLoss = 1, kJitter, kReordering, kDuplication };

}  // namespace

bool Network::concerns(const WorkerSelector& selector, Party end) const {
  return end.role == Role::kWorker && scenario_.concerns(selector, end.index);
}

LinkLaw Network::law_between(Party from, Party to) const {
  LinkLaw law;
  for (const LinkRule& rule : scenario_.links) {
    const bool selects_all = !rule.selector.node && !rule.selector.workers;
    if (selects_all || concerns(rule.selector, from) || concerns(rule.selector, to)) law = rule.law;
  }
  return law;
}

TimePoint Network::link_free(TimePoint now, Party from, Party to) const {
  TimePoint free = now;
  for (const Isolated& isolated : partitions_) {
    if (concerns(isolated.selector, from) != concerns(isolated.selector, to))
      free = std::max(free, isolated.until);
  }
  return free;
}

TimePoint Network::arrival(TimePoint now, Party from, Party to, Lane lane, size_t bytes,
                           Duration extra) {
  const LinkLaw law = law_between(from, to);
  const uint64_t frame = frames_++;
  const auto uniform = [&](uint64_t use, uint64_t turn) {
    return unit_interval(draw({seed_, static_cast<uint64_t>(Purpose::kNetwork), use, frame, turn}));
  };
  std::erase_if(partitions_, [&](const Isolated& each) { return each.until <= now; });

  Duration delay = law.latency + extra;
  if (law.jitter > Duration::zero())
    delay += from_seconds(-seconds(law.jitter) * std::log(1.0 - uniform(kJitter, 0)));
  for (int turn = 0; turn < kResendsMax && uniform(kLoss, static_cast<uint64_t>(turn)) < law.loss;
       ++turn)
    delay += law.resend;
  if (uniform(kReordering, 0) < law.reordering) delay += law.latency;

  TimePoint arrived = link_free(now, from, to) + delay;
  if (law.bytes_per_second > 0.0) {
    // The sender's outgoing link and the receiver's incoming link each carry one frame at a time.
    const double copies = uniform(kDuplication, 0) < law.duplication ? 2.0 : 1.0;
    const Duration busy = from_seconds(copies * static_cast<double>(bytes) / law.bytes_per_second);
    TimePoint& out = sends_[from];
    out = std::max(out, link_free(now, from, to)) + busy;
    TimePoint& in = receives_[to];
    in = std::max(in, out - busy + delay) + busy;
    arrived = in;
  }
  TimePoint& last = last_[{from, to, lane}];
  last = std::max(last, arrived);
  return last;
}

}  // namespace drover

#include "policy/simple.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "policy/wording.h"

namespace drover {
namespace {

uint32_t alive_in(const Situation& situation) {
  return static_cast<uint32_t>(situation.alive.size());
}

}  // namespace

Choice SyncPolicy::decide(const Situation& situation) {
  const uint32_t alive = alive_in(situation);
  return {.cutoff = alive,
          .reason = fmt::format("sync: waits for {} alive", so_many(alive, alive))};
}

StaticSharePolicy::StaticSharePolicy(double share) : share_(share) {
  DROVER_CHECK(share > 0.0);
  DROVER_CHECK(share <= 1.0);
}

Choice StaticSharePolicy::decide(const Situation& situation) {
  // Who finishes an earlier step is not alive in this one, but no reason to wait for fewer still.
  const uint32_t alive = std::max(alive_in(situation), situation.members);
  // Rounded, as in the published experiments (0.943 of 2,175 is 2,051, of 106 it is 100); but a
  // share below one means that somebody is spare, even of four workers.
  const auto nearest = static_cast<uint32_t>(std::round(share_ * static_cast<double>(alive)));
  const uint32_t most = share_ < 1.0 ? std::max(alive, 2u) - 1 : alive;
  const uint32_t cutoff = std::clamp(nearest, 1u, most);
  return {.cutoff = cutoff,
          .reason = fmt::format("static: {} alive, a share of {}", so_many(cutoff, alive), share_)};
}

StaticCountPolicy::StaticCountPolicy(uint32_t count) : count_(count) { DROVER_CHECK(count >= 1); }

Choice StaticCountPolicy::decide(const Situation& situation) {
  const uint32_t alive = alive_in(situation);
  // More than there are is said as it is: what becomes of it is the Decider's to say.
  return {.cutoff = count_,
          .reason = count_ > alive ? fmt::format("static: {} workers", count_)
                                   : fmt::format("static: {} alive", so_many(count_, alive))};
}

DeadlinePolicy::DeadlinePolicy(double limit) : limit_(limit) { DROVER_CHECK(limit > 0.0); }

Choice DeadlinePolicy::decide(const Situation& situation) {
  const uint32_t alive = alive_in(situation);
  return {
      .cutoff = alive,
      .time_limit = limit_,
      .reason = fmt::format("deadline: {}, but no longer than {}", so_many(alive, alive), limit_)};
}

}  // namespace drover

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
          .reason = fmt::format("sync: wait for {}", worker_count_text(alive, alive))};
}

StaticSharePolicy::StaticSharePolicy(double share) : share_(share) {
  DROVER_CHECK(share > 0.0);
  DROVER_CHECK(share <= 1.0);
}

Choice StaticSharePolicy::decide(const Situation& situation) {
  // A worker that is busy with an earlier step is not alive in this one. The share counts it
  // nevertheless, or the step would wait for even fewer gradients.
  const uint32_t alive = std::max(alive_in(situation), situation.members);
  // Rounded, as in the published experiments (0.943 of 2,175 is 2,051, of 106 it is 100). A share
  // below one leaves at least one backup worker, even of four workers.
  const auto nearest = static_cast<uint32_t>(std::round(share_ * static_cast<double>(alive)));
  const uint32_t most = share_ < 1.0 ? std::max(alive, 2u) - 1 : alive;
  const uint32_t cutoff = std::clamp(nearest, 1u, most);
  return {.cutoff = cutoff,
          .reason = fmt::format("static: wait for {} (share {})", worker_count_text(cutoff, alive),
                                share_)};
}

StaticCountPolicy::StaticCountPolicy(uint32_t count) : count_(count) { DROVER_CHECK(count >= 1); }

Choice StaticCountPolicy::decide(const Situation& situation) {
  const uint32_t alive = alive_in(situation);
  // The Decider lowers a count above the number of workers alive, and says so.
  return {.cutoff = count_,
          .reason = "static: wait for " + (count_ > alive ? fmt::format("{} workers", count_)
                                                          : worker_count_text(count_, alive))};
}

DeadlinePolicy::DeadlinePolicy(double limit) : limit_(limit) { DROVER_CHECK(limit > 0.0); }

Choice DeadlinePolicy::decide(const Situation& situation) {
  const uint32_t alive = alive_in(situation);
  return {.cutoff = alive,
          .time_limit = limit_,
          .reason = fmt::format("deadline: wait for {}{}", worker_count_text(alive, alive),
                                time_limit_text(limit_, situation.unit))};
}

}  // namespace drover

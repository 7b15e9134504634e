#include "policy/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "policy/wording.h"

namespace drover {

OraclePolicy::OraclePolicy(Objective objective, Foresight foresight)
    : goal_(objective), foresight_(std::move(foresight)) {
  DROVER_CHECK(foresight_ != nullptr);
}

Choice OraclePolicy::decide(const Situation& situation) {
  std::vector<double> times = foresight_(situation.step, situation.alive);
  DROVER_CHECK(times.size() == situation.alive.size());
  // Foresight returns the run-times of whole mini-batches.
  for (size_t i = 0; i < situation.shares.size(); ++i) times[i] *= situation.shares[i];
  std::sort(times.begin(), times.end());
  const ExpectedThroughput best =
      CutoffSearch::best(times, goal_.terms(situation.overhead, situation.noise));
  return {.cutoff = best.cutoff,
          .reason = fmt::format("oracle: wait for {}; the last of them arrives at {}",
                                worker_count_text(best.cutoff, static_cast<uint32_t>(times.size())),
                                time_text(best.arrival, situation.unit))};
}

}  // namespace drover

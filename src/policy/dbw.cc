#include "policy/dbw.h"

#include <algorithm>

#include "core/text.h"
#include "policy/isotonic.h"

namespace drover {
namespace {

constexpr size_t kMemory = 100;  // steps

}  // namespace

DbwPolicy::DbwPolicy(const DbwSettings& settings, Step warmup)
    : settings_(settings), warm_up_(warmup), recent_(kMemory) {}

void DbwPolicy::expect_arrivals(uint32_t alive) {
  expected_.assign(alive, 0.0);
  seen_.assign(alive, 0.0);
  bounds_.assign(alive, 0.0);
  in_vain_.assign(alive, 0.0);
  const auto wanted = static_cast<double>(settings_.window);
  for (size_t i = recent_.steps().size(); i-- > 0;) {
    const StepTimes& times = recent_.steps()[i];
    const std::vector<double>& arrived = arrivals_[i];
    const uint32_t count = participants(times);
    if (count == 0) continue;
    for (uint32_t k = 1; k <= alive; ++k) {
      if (seen_[k - 1] >= wanted) continue;
      // The number of workers may have changed: rank k now corresponds to the rank at the same
      // share of the workers of that step.
      const uint64_t rank = (uint64_t{k} * count + alive - 1) / alive;
      if (rank <= arrived.size()) {
        expected_[k - 1] += arrived[rank - 1];
        seen_[k - 1] += 1.0;
      } else if (seen_[k - 1] + in_vain_[k - 1] < wanted) {
        bounds_[k - 1] += times.elapsed;
        in_vain_[k - 1] += 1.0;
      }
    }
  }
  // A step that saw the k-th arrival also saw all earlier ones, so unknown ranks are at the end.
  const auto known =
      static_cast<size_t>(std::find(seen_.begin(), seen_.end(), 0.0) - seen_.begin());
  for (size_t i = 0; i < known; ++i) {
    expected_[i] /= seen_[i];
    if (in_vain_[i] > 0.0) expected_[i] = std::max(expected_[i], bounds_[i] / in_vain_[i]);
  }
  make_ascending(std::span(expected_).first(known), std::span(seen_).first(known));
  const double last = known > 0 ? expected_[known - 1] : 0.0;
  std::fill(expected_.begin() + static_cast<std::ptrdiff_t>(known), expected_.end(), last);
}

Choice DbwPolicy::decide(const Situation& situation) {
  if (!warm_up_.over()) return warm_up_.choice(situation);
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  const double measured =
      situation.noise > 0.0 ? situation.noise : static_cast<double>(alive) / 2.0;
  const double noise = settings_.noise.value_or(measured);
  expect_arrivals(alive);

  uint32_t best = alive;  // if no k has a gain, more gradients can only help
  double best_value = 0.0;
  double best_gain = 0.0;
  for (uint32_t k = 1; k <= alive; ++k) {
    const double gain = 1.0 - noise / static_cast<double>(k);
    const double time = situation.overhead + expected_[k - 1];
    if (gain <= 0.0 || time <= 0.0 || gain / time < best_value) continue;
    best = k;
    best_value = gain / time;
    best_gain = gain;
  }
  return {
      .cutoff = best,
      .reason = fmt::format("dbw: wait for {}; expect {} of the progress of a noise-free step "
                            "at {}, noise-to-signal ratio {}",
                            worker_count_text(best, alive), short_percent(best_gain),
                            time_text(expected_[best - 1], situation.unit), number_text(noise))};
}

void DbwPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  recent_.learn(times);
  arrivals_.emplace_back();
  if (arrivals_.size() > recent_.steps().size()) arrivals_.pop_front();
  first_arrivals(times, arrivals_.back());
}

void DbwPolicy::learn_late(Step step, WorkerId worker, double seconds) {
  const auto changed = recent_.learn_late(step, worker, seconds);
  if (changed) first_arrivals(recent_.steps()[*changed], arrivals_[*changed]);
}

}  // namespace drover

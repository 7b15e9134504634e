#include "policy/mad.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {

double median(std::vector<double>& values) {
  DROVER_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2.0;
}

MadPolicy::MadPolicy(const MadSettings& settings, Step warmup)
    : settings_(settings), warm_up_(warmup), recent_(settings.window) {}

Choice MadPolicy::decide(const Situation& situation) {
  if (!warm_up_.over()) return warm_up_.choice(situation);
  pool_.clear();
  for (const StepTimes& times : recent_.steps()) {
    for (size_t worker = 0; worker < times.known.size(); ++worker) {
      if (times.known[worker] != Known::kNothing) pool_.push_back(times.seconds[worker]);
    }
  }
  if (pool_.empty()) return warm_up_.choice(situation);
  const double middle = median(pool_);
  for (double& each : pool_) each = std::abs(each - middle);
  const double deviation = median(pool_);

  const auto alive = static_cast<uint32_t>(situation.alive.size());
  const auto quorum =
      static_cast<uint32_t>(std::ceil(settings_.quorum * static_cast<double>(alive)));
  const double limit = middle + settings_.deviations * deviation;
  const TimeUnit unit = situation.unit;
  return {.cutoff = alive,
          .time_limit = limit,
          .at_least = std::clamp(quorum, 1u, alive),
          .reason = fmt::format("mad: wait for {}{} (median {} + {} x MAD {} of the last {} steps)",
                                worker_count_text(alive, alive), time_limit_text(limit, unit),
                                time_text(middle, unit), settings_.deviations,
                                time_text(deviation, unit), recent_.steps().size())};
}

void MadPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  recent_.learn(times);
}

void MadPolicy::learn_late(Step step, WorkerId worker, double seconds) {
  recent_.learn_late(step, worker, seconds);
}

}  // namespace drover

#include "shard/rate_table.h"

#include <iterator>
#include <string>

namespace drover {
namespace {

// The most steps that a rate may be ahead of the open step.
constexpr Step kRatesMax = 1'024;

}  // namespace

Status RateTable::on_rate(WorkerId worker, const LearningRate& rate, Step open) {
  if (rate.from >= open + kRatesMax)
    return invalid_input("worker " + std::to_string(worker) + " set a learning rate for step " +
                         std::to_string(rate.from) + ", which is too far ahead of step " +
                         std::to_string(open));
  const auto [place, is_new] = rates_.try_emplace(rate.from, Rate{worker, rate.rate});
  if (!is_new && worker <= place->second.worker) place->second = {worker, rate.rate};
  // Keeps the current rate and later ones.
  auto in_force = rates_.upper_bound(open);
  if (in_force != rates_.begin()) rates_.erase(rates_.begin(), std::prev(in_force));
  return done();
}

double RateTable::rate_of(Step step, uint64_t samples) const {
  const auto after = rates_.upper_bound(step);
  const double rate =
      after == rates_.begin() ? learning_rate(schedule_, step) : std::prev(after)->second.rate;
  return rate * rate_factor(schedule_.rule, static_cast<double>(samples),
                            static_cast<double>(full_samples_), noise_scale_);
}

}  // namespace drover

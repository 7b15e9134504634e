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
  const auto [place, is_new] = rates_.try_emplace(rate.from);
  if (is_new || worker <= place->second.worker) place->second = {worker, rate.rate, rate.groups};
  // Keeps the current rate and later ones.
  auto in_force = rates_.upper_bound(open);
  if (in_force != rates_.begin()) rates_.erase(rates_.begin(), std::prev(in_force));
  return done();
}

const RateTable::Rate* RateTable::in_force(Step step) const {
  const auto after = rates_.upper_bound(step);
  return after == rates_.begin() ? nullptr : &std::prev(after)->second;
}

double RateTable::factor(uint64_t samples) const {
  return rate_factor(schedule_.rule, static_cast<double>(samples),
                     static_cast<double>(full_samples_), noise_scale_);
}

double RateTable::rate_of(Step step, uint64_t samples) const {
  const Rate* const rate = in_force(step);
  return (rate ? rate->rate : learning_rate(schedule_, step)) * factor(samples);
}

RateTable::Update RateTable::update_of(Step step, uint32_t group, uint64_t samples) const {
  const Rate* const rate = group > 0 ? in_force(step) : nullptr;
  if (!rate || group > rate->groups.size()) return {.rate = rate_of(step, samples)};
  const GroupSettings& own = rate->groups[group - 1];
  return {.rate = own.rate * factor(samples), .optimizer = &own.optimizer};
}

}  // namespace drover

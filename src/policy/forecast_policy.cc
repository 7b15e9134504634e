#include "policy/forecast_policy.h"

#include <utility>

#include "core/check.h"

namespace drover {

ForecastPolicy::ForecastPolicy(std::string name, std::unique_ptr<Forecaster> forecaster,
                               Objective objective, Step warmup, bool hedged)
    : name_(std::move(name)),
      forecaster_(std::move(forecaster)),
      warm_up_(warmup),
      goal_(objective),
      hedged_(hedged) {
  DROVER_CHECK(forecaster_ != nullptr);
}

Choice ForecastPolicy::decide(const Situation& situation) {
  const Terms terms = goal_.terms(situation.overhead, situation.noise);
  chosen_ = false;
  if (!warm_up_.over()) return warm_up_.choice(situation);
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  if (!forecaster_->ready(situation.alive)) {
    return {.cutoff = alive,
            .reason = fmt::format("{}: waits for {}, of whom too little is known after {} steps",
                                  name_, so_many(alive, alive), warm_up_.seen())};
  }
  forecaster_->forecast(situation.step, situation.alive, forecast_);
  DROVER_CHECK(forecast_.workers == alive);
  sorter_.sort(forecast_);
  chosen_ = true;
  const Hedged best = hedged_ ? hedge_search_.best(forecast_, terms)
                              : Hedged{search_.best(forecast_, terms), kNoTimeLimit};
  const std::string limit =
      best.time_limit < kNoTimeLimit ? fmt::format(" or until {}", brief(best.time_limit)) : "";
  return {.cutoff = best.promise.cutoff,
          .time_limit = best.time_limit,
          .at_least = best.at_least,
          .reason = fmt::format("{}: {}{}, {}; {}", name_, so_many(best.promise.cutoff, alive),
                                limit, describe(best.promise, terms), forecaster_->basis())};
}

void ForecastPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  if (chosen_) goal_.learn(times);
  forecaster_->learn(times);
}

void ForecastPolicy::learn_late(Step step, WorkerId worker, double seconds) {
  forecaster_->learn_late(step, worker, seconds);
}

}  // namespace drover

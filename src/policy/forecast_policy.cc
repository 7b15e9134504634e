#include "policy/forecast_policy.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "policy/expected_arrivals.h"
#include "policy/live_choice.h"

namespace drover {
ForecastPolicy::ForecastPolicy(std::string name, std::unique_ptr<Forecaster> forecaster,
                               const ForecastPolicySettings& settings)
    : name_(std::move(name)),
      forecaster_(std::move(forecaster)),
      warm_up_(settings.warmup),
      goal_(settings.objective),
      settings_(settings),
      live_(settings.seed) {
  DROVER_CHECK(forecaster_ != nullptr);
}

Choice ForecastPolicy::decide(const Situation& situation) {
  const Terms terms = goal_.terms(situation.overhead, situation.noise);
  chosen_ = false;
  if (!warm_up_.over()) return warm_up_.choice(situation);
  const auto alive = static_cast<uint32_t>(situation.alive.size());
  if (!forecaster_->ready(situation.alive)) {
    return {.cutoff = alive,
            .reason = fmt::format("{}: wait for {}; not enough data for a forecast after {} steps",
                                  name_, worker_count_text(alive, alive), warm_up_.seen())};
  }
  forecaster_->forecast(situation.step, situation.alive, forecast_);
  DROVER_CHECK(forecast_.workers == alive);
  // Order statistics belong to no particular worker, so that they cannot be scaled. Their
  // forecaster learns the run-times of the shares directly.
  if (forecaster_->by_worker()) ShareScaling::to_shares(situation, forecast_);
  if (settings_.live) live_.begin(forecast_, situation.shares, goal_.long_run());
  sorter_.sort(forecast_);
  chosen_ = true;
  const Hedged best = settings_.hedged ? hedge_search_.best(forecast_, terms)
                                       : Hedged{search_.best(forecast_, terms), kNoTimeLimit};
  Choice choice{
      .cutoff = best.expected.cutoff,
      .time_limit = best.time_limit,
      .at_least = best.at_least,
      .reason = fmt::format("{}: wait for {}{}; {}; {}", name_,
                            worker_count_text(best.expected.cutoff, alive),
                            time_limit_text(best.time_limit, situation.unit),
                            describe(best.expected, terms, situation.unit), forecaster_->basis()),
      .expected = expected_arrivals(forecast_),
      .review = {},
      .model_stale = forecaster_->model_stale()};
  if (settings_.live)
    choice.review =
        live_.plan({best.expected.cutoff, best.time_limit}, best.at_least, best.expected.arrival);
  return choice;
}

std::optional<Choice> ForecastPolicy::reconsider(const StepProgress& progress) {
  if (!settings_.live || !chosen_) return std::nullopt;
  const std::optional<LiveStep::Revision> revision = live_.review(progress);
  if (!revision) return std::nullopt;
  Choice choice = live_choice(name_, *revision, progress, live_.workers());
  choice.model_stale = forecaster_->model_stale();
  return choice;
}

void ForecastPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  if (chosen_) goal_.learn(times);
  forecaster_->learn(forecaster_->by_worker() ? scaling_.whole(times) : times);
}

void ForecastPolicy::learn_late(Step step, WorkerId worker, double seconds) {
  forecaster_->learn_late(step, worker, scaling_.late(step, worker, seconds));
}

}  // namespace drover

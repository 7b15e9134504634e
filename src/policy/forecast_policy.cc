#include "policy/forecast_policy.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "policy/expected_arrivals.h"

namespace drover {
namespace {

constexpr size_t kStepsKept = 64;  // late run-times of older steps are not converted

// Conversions between the run-time of a whole mini-batch and that of a share of it (balance.h).
double of_share(double whole, double share, double fixed) {
  return whole > fixed ? fixed + (whole - fixed) * share : whole * share;
}
double of_whole(double part, double share, double fixed) {
  return part > fixed ? fixed + (part - fixed) / share : part / share;
}

}  // namespace

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
  scale_to_shares(situation);
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

// Order statistics belong to no particular worker, so that they cannot be scaled. Their forecaster
// learns the run-times of the shares directly.
void ForecastPolicy::scale_to_shares(const Situation& situation) {
  if (situation.shares.empty() || !forecaster_->by_worker()) return;
  for (uint32_t k = 0; k < forecast_.samples; ++k) {
    const std::span<float> row = forecast_.row(k);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(
          of_share(static_cast<double>(row[i]), situation.shares[i], situation.fixed));
    }
  }
}

std::optional<Choice> ForecastPolicy::reconsider(const StepProgress& progress) {
  if (!settings_.live || !chosen_) return std::nullopt;
  const std::optional<LiveStep::Revision> revision = live_.review(progress);
  if (!revision) return std::nullopt;
  const uint32_t here = revision->arrived;
  const uint32_t alive = live_.workers();
  const std::string at = fmt::format("{}: at {} with {} of {}", name_,
                                     time_text(progress.now, progress.unit), here, alive);
  if (revision->closes) {
    return Choice{.cutoff = here,
                  .time_limit = progress.now,
                  .at_least = here,
                  .reason = at + ": close the step; the other gradients are not worth the wait",
                  .expected = {},
                  .review = {},
                  .model_stale = forecaster_->model_stale()};
  }
  const WaitPlan& plan = revision->plan;
  return Choice{
      .cutoff = plan.arrivals,
      .time_limit = plan.until,
      .at_least = revision->at_least,
      .reason = fmt::format("{}: {} wait for {}{}", at, revision->changed ? "new plan," : "still",
                            worker_count_text(plan.arrivals, alive),
                            time_limit_text(plan.until, progress.unit)),
      .review = revision->next,
      .model_stale = forecaster_->model_stale()};
}

void ForecastPolicy::learn(const StepTimes& times) {
  warm_up_.learn();
  if (chosen_) goal_.learn(times);
  if (times.shares.empty() || !forecaster_->by_worker()) return forecaster_->learn(times);
  StepTimes whole = times;
  for (size_t i = 0; i < whole.seconds.size(); ++i) {
    if (whole.known[i] == Known::kNothing) continue;
    whole.seconds[i] = of_whole(whole.seconds[i], times.shares[i], times.fixed);
  }
  dealt_.push_back({times.step, times.fixed, times.shares});
  if (dealt_.size() > kStepsKept) dealt_.pop_front();
  forecaster_->learn(whole);
}

void ForecastPolicy::learn_late(Step step, WorkerId worker, double seconds) {
  const auto dealt = std::find_if(dealt_.begin(), dealt_.end(),
                                  [&](const Dealt& each) { return each.step == step; });
  if (dealt != dealt_.end() && worker < dealt->shares.size()) {
    seconds = of_whole(seconds, dealt->shares[worker], dealt->fixed);
  }
  forecaster_->learn_late(step, worker, seconds);
}

}  // namespace drover

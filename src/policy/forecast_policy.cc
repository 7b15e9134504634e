#include "policy/forecast_policy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "policy/expected_arrivals.h"

namespace drover {
namespace {

// Often enough that little is missed, seldom enough to cost little: after every eighth of those
// missing, and when a tenth of the time waited so far has passed.
constexpr uint32_t kReviews = 8;
constexpr double kReviewAfter = 0.1;
// Before half of the cutoff is here, nothing can be worth closing for.
constexpr uint32_t kFirstReview = 2;  // the cutoff over this

constexpr uint64_t kLiveDraws = 5;  // beside those of the forecasters

constexpr size_t kStepsKept = 64;  // in which somebody late is still heard of

// Between the run-time of a whole mini-batch and that of a share of it (balance.h).
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
      settings_(settings) {
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
  scale_to_shares(situation);
  if (settings_.live) {
    sorted_ = forecast_.sorted;
    remaining_.start(forecast_);
    terms_ = goal_.long_run();
    shares_.assign(situation.shares.begin(), situation.shares.end());
  }
  sorter_.sort(forecast_);
  chosen_ = true;
  const Hedged best = settings_.hedged ? hedge_search_.best(forecast_, terms)
                                       : Hedged{search_.best(forecast_, terms), kNoTimeLimit};
  const std::string limit =
      best.time_limit < kNoTimeLimit ? fmt::format(" or until {}", brief(best.time_limit)) : "";
  Choice choice{
      .cutoff = best.promise.cutoff,
      .time_limit = best.time_limit,
      .at_least = best.at_least,
      .reason = fmt::format("{}: {}{}, {}; {}", name_, so_many(best.promise.cutoff, alive), limit,
                            describe(best.promise, terms), forecaster_->basis()),
      .expected = expected_arrivals(forecast_),
      .review = {},
      .model_stale = forecaster_->model_stale()};
  if (settings_.live) {
    plan_ = {best.promise.cutoff, best.time_limit};
    at_least_ = best.at_least;
    choice.review = {.arrivals = std::max(1u, best.promise.cutoff / kFirstReview),
                     .at = best.promise.arrival};
  }
  return choice;
}

// Of order statistics, which are nobody's, the forecaster has seen the times as they were.
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

// Whoever is here; of sorted run-times, which are nobody's, the first so many.
void ForecastPolicy::mark_arrived(const Midway& midway) {
  const size_t alive = midway.arrived.size();
  arrived_.assign(alive, false);
  gathered_ = {.now = midway.now};
  ratios_.clear();
  for (size_t i = 0; i < alive; ++i) {
    if (midway.arrived[i] > midway.now) continue;
    arrived_[sorted_ ? gathered_.arrivals : i] = true;
    ++gathered_.arrivals;
    gathered_.gradients += shares_.empty() ? 1.0 : shares_[i];
    if (!sorted_)
      ratios_.push_back(midway.arrived[i] / remaining_.median(static_cast<uint32_t>(i)));
  }
  // The first to arrive are those who were quick: if even they are late, all are.
  stretch_ = 1.0;
  if (ratios_.empty()) return;
  const auto middle = ratios_.begin() + static_cast<std::ptrdiff_t>(ratios_.size() / 2);
  std::nth_element(ratios_.begin(), middle, ratios_.end());
  stretch_ = std::max(1.0, *middle);
}

std::optional<Choice> ForecastPolicy::reconsider(const Midway& midway) {
  if (!settings_.live || !chosen_) return std::nullopt;
  DROVER_CHECK(midway.arrived.size() == remaining_.workers());
  mark_arrived(midway);
  const uint32_t alive = remaining_.workers();
  const uint32_t here = gathered_.arrivals;
  if (midway.now >= plan_.until) plan_ = {std::max(1u, at_least_), kNoTimeLimit};
  // The last one needed is here: whoever asks is about to close.
  if (here >= plan_.arrivals) return std::nullopt;
  remaining_.condition(arrived_, midway.now,
                       forecast_draws(settings_.seed, midway.step, here, kLiveDraws), stretch_);
  missing_shares_.clear();
  if (!shares_.empty()) {
    const double missing = std::accumulate(shares_.begin(), shares_.end(), -gathered_.gradients);
    for (const uint32_t column : remaining_.missing()) {
      missing_shares_.push_back(sorted_ ? missing / (alive - here) : shares_[column]);
    }
  }
  const Found found = stop_search_.best(remaining_, missing_shares_, gathered_, plan_, terms_);
  const std::string at =
      fmt::format("{}: at {} with {} here", name_, brief(midway.now), so_many(here, alive));
  if (found.closes && here > 0) {
    return Choice{.cutoff = here,
                  .time_limit = midway.now,
                  .at_least = here,
                  .reason = at + ", closes, since nothing that may still come is worth its wait",
                  .expected = {},
                  .review = {},
                  .model_stale = forecaster_->model_stale()};
  }
  const bool changed = found.changed && !found.closes;
  if (changed) plan_ = found.plan;
  const std::string until =
      plan_.until < kNoTimeLimit ? fmt::format(" until {}", brief(plan_.until)) : "";
  const double pause = kReviewAfter * midway.now;
  return Choice{
      .cutoff = plan_.arrivals,
      .time_limit = plan_.until,
      .at_least = std::min(plan_.arrivals, std::max({1u, here, at_least_})),
      .reason = fmt::format("{}, {} for {}{}", at, changed ? "decides to wait" : "still waits",
                            so_many(plan_.arrivals, alive), until),
      .review = {.arrivals = here + std::max(1u, (alive - here) / kReviews),
                 .at = midway.now + pause},
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

#include "policy/live_step.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace drover {
namespace {

// Often enough that little is missed, seldom enough to cost little: after every eighth of the
// missing arrivals, and when a tenth of the time waited so far has passed.
constexpr uint32_t kReviews = 8;
constexpr double kReviewAfter = 0.1;
// Before half of the cutoff is here, nothing can be worth closing for.
constexpr uint32_t kFirstReview = 2;  // the cutoff over this

constexpr uint64_t kLiveDraws = 5;  // beside those of the forecasters

}  // namespace

void LiveStep::begin(const Forecast& forecast, std::span<const double> shares, const Terms& terms) {
  sorted_ = forecast.sorted;
  remaining_.start(forecast);
  terms_ = terms;
  shares_.assign(shares.begin(), shares.end());
}

Review LiveStep::plan(const WaitPlan& plan, uint32_t at_least, double expected_at) {
  plan_ = plan;
  at_least_ = at_least;
  return {.arrivals = std::max(1u, plan.arrivals / kFirstReview), .at = expected_at};
}

// Of sorted run-times, which are no particular worker's, the first so many have arrived.
void LiveStep::mark_arrived(const StepProgress& midway) {
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
  // The first to arrive are the fast ones: if even they are late, all are.
  stretch_ = 1.0;
  if (ratios_.empty()) return;
  const auto middle = ratios_.begin() + static_cast<std::ptrdiff_t>(ratios_.size() / 2);
  std::nth_element(ratios_.begin(), middle, ratios_.end());
  stretch_ = std::max(1.0, *middle);
}

void LiveStep::find_missing_shares() {
  missing_shares_.clear();
  if (shares_.empty()) return;
  const double missing = std::accumulate(shares_.begin(), shares_.end(), -gathered_.gradients);
  const uint32_t count = workers() - gathered_.arrivals;
  for (const uint32_t column : remaining_.missing())
    missing_shares_.push_back(sorted_ ? missing / count : shares_[column]);
}

std::optional<LiveStep::Revision> LiveStep::review(const StepProgress& midway) {
  DROVER_CHECK(midway.arrived.size() == workers());
  mark_arrived(midway);
  const uint32_t here = gathered_.arrivals;
  if (midway.now >= plan_.until) plan_ = {std::max(1u, at_least_), kNoTimeLimit};
  if (here >= plan_.arrivals) return std::nullopt;
  remaining_.condition(arrived_, midway.now, forecast_draws(seed_, midway.step, here, kLiveDraws),
                       stretch_);
  find_missing_shares();
  const Found found = search_.best(remaining_, missing_shares_, gathered_, plan_, terms_);
  Revision revision{.arrived = here, .closes = found.closes && here > 0};
  revision.changed = found.changed && !found.closes;
  if (revision.changed) plan_ = found.plan;
  revision.plan = plan_;
  revision.at_least = std::min(plan_.arrivals, std::max({1u, here, at_least_}));
  revision.next = {.arrivals = here + std::max(1u, (workers() - here) / kReviews),
                   .at = midway.now + kReviewAfter * midway.now};
  return revision;
}

}  // namespace drover

#include "policy/live_step.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace drover {
namespace {

// A review follows after an eighth of the missing arrivals, or after a tenth of the time waited so
// far. That is frequent enough to close in time, and rare enough to be cheap.
constexpr uint32_t kReviews = 8;
constexpr double kReviewAfter = 0.1;
// Closing is not worthwhile before half of the cutoff has arrived.
constexpr uint32_t kFirstReview = 2;  // the cutoff divided by this

constexpr uint64_t kLiveDraws = 5;  // distinct from the uses of the forecasters

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

// In a sorted forecast, whose columns are ranks, the first columns have arrived.
void LiveStep::mark_arrived(const StepProgress& progress) {
  const size_t alive = progress.arrived.size();
  arrived_.assign(alive, false);
  collected_ = {.now = progress.now};
  ratios_.clear();
  for (size_t i = 0; i < alive; ++i) {
    if (progress.arrived[i] > progress.now) continue;
    arrived_[sorted_ ? collected_.arrivals : i] = true;
    ++collected_.arrivals;
    collected_.gradients += shares_.empty() ? 1.0 : shares_[i];
    if (!sorted_)
      ratios_.push_back(progress.arrived[i] / remaining_.median(static_cast<uint32_t>(i)));
  }
  // Fast workers arrive first. If even they are late, all workers probably are.
  stretch_ = 1.0;
  if (ratios_.empty()) return;
  const auto middle = ratios_.begin() + static_cast<std::ptrdiff_t>(ratios_.size() / 2);
  std::nth_element(ratios_.begin(), middle, ratios_.end());
  stretch_ = std::max(1.0, *middle);
}

void LiveStep::find_missing_shares() {
  missing_shares_.clear();
  if (shares_.empty()) return;
  const double missing = std::accumulate(shares_.begin(), shares_.end(), -collected_.gradients);
  const uint32_t count = workers() - collected_.arrivals;
  for (const uint32_t column : remaining_.missing())
    missing_shares_.push_back(sorted_ ? missing / count : shares_[column]);
}

std::optional<LiveStep::Revision> LiveStep::review(const StepProgress& progress) {
  DROVER_CHECK(progress.arrived.size() == workers());
  mark_arrived(progress);
  const uint32_t here = collected_.arrivals;
  if (progress.now >= plan_.until) plan_ = {std::max(1u, at_least_), kNoTimeLimit};
  if (here >= plan_.arrivals) return std::nullopt;
  remaining_.condition(arrived_, progress.now,
                       forecast_draws(seed_, progress.step, here, kLiveDraws), stretch_);
  find_missing_shares();
  const StopDecision found = search_.best(remaining_, missing_shares_, collected_, plan_, terms_);
  Revision revision{.arrived = here, .closes = found.closes && here > 0};
  revision.changed = found.changed && !found.closes;
  if (revision.changed) plan_ = found.plan;
  revision.plan = plan_;
  revision.at_least = std::min(plan_.arrivals, std::max({1u, here, at_least_}));
  revision.next = {.arrivals = here + std::max(1u, (workers() - here) / kReviews),
                   .at = progress.now + kReviewAfter * progress.now};
  return revision;
}

}  // namespace drover

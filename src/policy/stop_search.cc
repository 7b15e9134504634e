#include "policy/stop_search.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

// Moments that are tried, evenly by rank among what may come.
constexpr size_t kLimits = 16;
constexpr size_t kPooled = 512;
// Arrivals that are waited for: few, since soon it can be decided again.
constexpr size_t kNext = 8;
// What another plan must promise more, as a share of the gradients.
constexpr double kMargin = 0.05;

}  // namespace

void StopSearch::choose_limits(const Remaining& remaining, double planned) {
  pooled_.clear();
  const size_t width = remaining.missing().size();
  const size_t all = remaining.samples() * width;
  size_t stride = std::max<size_t>(1, all / kPooled);
  if (stride > 1 && width % stride == 0) ++stride;  // not always the same workers
  for (size_t i = 0; i < all; i += stride) {
    const float time = remaining.row(static_cast<uint32_t>(i / width))[i % width];
    if (time < kNever) pooled_.push_back(time);
  }
  std::sort(pooled_.begin(), pooled_.end());
  limits_.clear();
  const size_t count = std::min(kLimits, pooled_.size());
  for (size_t j = 1; j <= count; ++j) limits_.push_back(pooled_[j * pooled_.size() / count - 1]);
  // A plan without a limit ends, at the latest, when nobody is expected any more.
  if (planned < static_cast<double>(kNever)) limits_.push_back(static_cast<float>(planned));
  std::sort(limits_.begin(), limits_.end());
  limits_.erase(std::unique(limits_.begin(), limits_.end()), limits_.end());
}

void StopSearch::add_row(const Remaining& remaining, uint32_t row, std::span<const double> shares,
                         const Gathered& gathered, const WaitPlan& planned, const Terms& terms) {
  const std::span<const float> times = remaining.row(row);
  const double weight = remaining.weights()[row];
  std::fill(bucket_.begin(), bucket_.end(), 0.0);
  next_.clear();
  float last = 0.0F;
  for (size_t j = 0; j < times.size(); ++j) {
    const double share = shares.empty() ? 1.0 : shares[j];
    const auto place = static_cast<size_t>(
        std::lower_bound(limits_.begin(), limits_.end(), times[j]) - limits_.begin());
    bucket_[place] += share;
    last = std::max(last, times[j]);
    next_.emplace_back(times[j], static_cast<float>(share));
  }
  double gradients = gathered.gradients;
  for (size_t j = 0; j < limits_.size(); ++j) {
    gradients += bucket_[j];
    const auto end = static_cast<double>(std::min(limits_[j], last));  // or everybody is here
    by_limit_[j] += weight * terms.value_of(gradients, end);
  }
  const auto by_then = [&](float moment) {
    double sum = gathered.gradients;
    for (size_t j = 0; j < limits_.size() && limits_[j] <= moment; ++j) sum += bucket_[j];
    return sum;
  };
  const size_t wanted = planned.arrivals - gathered.arrivals;  // of the plan there is
  const auto end_of_plan = std::min(static_cast<float>(planned.until), limits_.back());
  bool counted = false;
  if (wanted <= next_.size()) {
    // The plan's last one need only be found; the others need not be in order.
    const auto last_wanted = next_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
    std::nth_element(next_.begin(), last_wanted, next_.end());
    counted = last_wanted->first <= end_of_plan;
    gradients = gathered.gradients;
    for (auto each = next_.begin(); counted && each <= last_wanted; ++each)
      gradients += static_cast<double>(each->second);
    if (counted)
      as_planned_ += weight * terms.value_of(gradients, static_cast<double>(last_wanted->first));
  }
  const size_t sorted = by_count_.size();
  std::partial_sort(next_.begin(), next_.begin() + static_cast<std::ptrdiff_t>(sorted),
                    next_.end());
  gradients = gathered.gradients;
  for (size_t c = 0; c < sorted; ++c) {
    const auto [time, share] = next_[c];
    gradients += static_cast<double>(share);
    by_count_[c] +=
        weight * (time <= limits_.back() ? terms.value_of(gradients, static_cast<double>(time))
                                         : terms.value_of(by_then(limits_.back()),
                                                          static_cast<double>(limits_.back())));
  }
  if (!counted) {
    const float end = std::min(end_of_plan, last);
    as_planned_ += weight * terms.value_of(by_then(end_of_plan), static_cast<double>(end));
  }
}

Found StopSearch::best(const Remaining& remaining, std::span<const double> shares,
                       const Gathered& gathered, const WaitPlan& planned, const Terms& terms) {
  DROVER_CHECK(!remaining.missing().empty());
  DROVER_CHECK(planned.arrivals > gathered.arrivals);
  const double closing = terms.value_of(gathered.gradients, gathered.now);
  Found found{.plan = {gathered.arrivals, gathered.now},
              .changed = true,
              .closes = true,
              .value = closing,
              .closing = closing};
  choose_limits(remaining, planned.until);
  if (limits_.empty()) return found;  // nobody is expected any more
  bucket_.resize(limits_.size() + 1);
  by_limit_.assign(limits_.size(), 0.0);
  const size_t count = std::min(kNext, remaining.missing().size());
  by_count_.assign(count, 0.0);
  as_planned_ = 0.0;
  for (uint32_t row = 0; row < remaining.samples(); ++row) {
    add_row(remaining, row, shares, gathered, planned, terms);
  }
  const auto all = gathered.arrivals + static_cast<uint32_t>(remaining.missing().size());
  for (size_t c = 0; c < count; ++c) {
    if (by_count_[c] <= found.value) continue;
    found.plan = {gathered.arrivals + static_cast<uint32_t>(c + 1),
                  static_cast<double>(limits_.back())};
    found.value = by_count_[c];
    found.closes = false;
  }
  for (size_t j = 0; j < limits_.size(); ++j) {
    if (by_limit_[j] <= found.value) continue;
    found.plan = {all, static_cast<double>(limits_[j])};
    found.value = by_limit_[j];
    found.closes = false;
  }
  const double margin = kMargin * terms.worth_of(std::max(1.0, gathered.gradients), gathered.now);
  if (found.value >= as_planned_ + margin) return found;
  return {.plan = planned, .value = as_planned_, .closing = closing};
}

}  // namespace drover

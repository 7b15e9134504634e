#include "policy/stop_search.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

// Time limits to try, at evenly spaced ranks of the sampled arrivals.
constexpr size_t kLimits = 16;
constexpr size_t kPooled = 512;
// Numbers of further arrivals to try. Few are enough, since the next review comes soon.
constexpr size_t kNext = 8;
// A new plan must be better by this share of the value of the gradients.
constexpr double kMargin = 0.05;

}  // namespace

void StopSearch::choose_limits(const Remaining& remaining, double planned) {
  pooled_.clear();
  const size_t width = remaining.missing().size();
  const size_t all = remaining.samples() * width;
  size_t stride = std::max<size_t>(1, all / kPooled);
  if (stride > 1 && width % stride == 0) ++stride;  // so that all workers are sampled
  for (size_t i = 0; i < all; i += stride) {
    const float time = remaining.row(static_cast<uint32_t>(i / width))[i % width];
    if (time < kNever) pooled_.push_back(time);
  }
  std::sort(pooled_.begin(), pooled_.end());
  limits_.clear();
  const size_t count = std::min(kLimits, pooled_.size());
  for (size_t j = 1; j <= count; ++j) limits_.push_back(pooled_[j * pooled_.size() / count - 1]);
  // A plan without a limit ends at the latest when no more arrivals are expected.
  if (planned < static_cast<double>(kNever)) limits_.push_back(static_cast<float>(planned));
  std::sort(limits_.begin(), limits_.end());
  limits_.erase(std::unique(limits_.begin(), limits_.end()), limits_.end());
}

void StopSearch::add_row(const Remaining& remaining, uint32_t row, std::span<const double> shares,
                         const Collected& collected, const WaitPlan& planned, const Terms& terms) {
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
  double gradients = collected.gradients;
  for (size_t j = 0; j < limits_.size(); ++j) {
    gradients += bucket_[j];
    const auto end = static_cast<double>(std::min(limits_[j], last));  // all may arrive earlier
    by_limit_[j] += weight * terms.value_of(gradients, end);
  }
  const auto by_then = [&](float time) {
    double sum = collected.gradients;
    for (size_t j = 0; j < limits_.size() && limits_[j] <= time; ++j) sum += bucket_[j];
    return sum;
  };
  const size_t wanted = planned.arrivals - collected.arrivals;  // by the current plan
  const auto end_of_plan = std::min(static_cast<float>(planned.until), limits_.back());
  bool counted = false;
  if (wanted <= next_.size()) {
    // Only the plan's last arrival matters; the others need not be sorted.
    const auto last_wanted = next_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
    std::nth_element(next_.begin(), last_wanted, next_.end());
    counted = last_wanted->first <= end_of_plan;
    gradients = collected.gradients;
    for (auto each = next_.begin(); counted && each <= last_wanted; ++each)
      gradients += static_cast<double>(each->second);
    if (counted)
      as_planned_ += weight * terms.value_of(gradients, static_cast<double>(last_wanted->first));
  }
  const size_t sorted = by_count_.size();
  std::partial_sort(next_.begin(), next_.begin() + static_cast<std::ptrdiff_t>(sorted),
                    next_.end());
  gradients = collected.gradients;
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

StopDecision StopSearch::best(const Remaining& remaining, std::span<const double> shares,
                              const Collected& collected, const WaitPlan& planned,
                              const Terms& terms) {
  DROVER_CHECK(!remaining.missing().empty());
  DROVER_CHECK(planned.arrivals > collected.arrivals);
  const double closing = terms.value_of(collected.gradients, collected.now);
  StopDecision found{.plan = {collected.arrivals, collected.now},
                     .changed = true,
                     .closes = true,
                     .value = closing,
                     .closing = closing};
  choose_limits(remaining, planned.until);
  if (limits_.empty()) return found;  // no more arrivals are expected
  bucket_.resize(limits_.size() + 1);
  by_limit_.assign(limits_.size(), 0.0);
  const size_t count = std::min(kNext, remaining.missing().size());
  by_count_.assign(count, 0.0);
  as_planned_ = 0.0;
  for (uint32_t row = 0; row < remaining.samples(); ++row) {
    add_row(remaining, row, shares, collected, planned, terms);
  }
  const auto all = collected.arrivals + static_cast<uint32_t>(remaining.missing().size());
  for (size_t c = 0; c < count; ++c) {
    if (by_count_[c] <= found.value) continue;
    found.plan = {collected.arrivals + static_cast<uint32_t>(c + 1),
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
  const double margin = kMargin * terms.worth_of(std::max(1.0, collected.gradients), collected.now);
  if (found.value >= as_planned_ + margin) return found;
  return {.plan = planned, .value = as_planned_, .closing = closing};
}

}  // namespace drover

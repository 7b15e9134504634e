#include "policy/close_rule.h"

#include <algorithm>

#include "core/check.h"

namespace drover {

StepClose close_of(const Choice& choice, std::span<const double> sorted) {
  DROVER_CHECK(choice.cutoff >= 1);
  DROVER_CHECK(choice.cutoff <= sorted.size());
  const double enough = sorted[choice.cutoff - 1];
  if (enough <= choice.time_limit) return {choice.cutoff, enough};
  const auto in_time = static_cast<uint32_t>(
      std::upper_bound(sorted.begin(), sorted.end(), choice.time_limit) - sorted.begin());
  const uint32_t least = std::clamp(choice.at_least, 1u, choice.cutoff);
  if (in_time >= least) return {in_time, choice.time_limit};
  return {least, sorted[least - 1]};
}

StepClose close_of(const Choice& choice, std::span<const double> sorted, double now) {
  const StepClose close = close_of(choice, sorted);
  if (close.elapsed > now) return close;
  const auto here = std::upper_bound(sorted.begin(), sorted.end(), now) - sorted.begin();
  return {static_cast<uint32_t>(here), now};
}

double review_of(const Choice& choice, std::span<const double> sorted) {
  const Review& review = choice.review;
  if (review.arrivals == 0 || review.arrivals > sorted.size()) return review.at;
  return std::min(review.at, sorted[review.arrivals - 1]);
}

}  // namespace drover

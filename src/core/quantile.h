// Quantiles of values, without interpolation: the result is always one of the values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>

#include "core/check.h"

namespace drover {

// The value at index `place` of the values in ascending order. Reorders the values.
// REQUIRES: place < size.
template <std::ranges::random_access_range Values>
std::ranges::range_value_t<Values> value_in_order(Values&& values, size_t place) {
  DROVER_CHECK(place < std::ranges::size(values));
  const auto found =
      std::ranges::begin(values) + static_cast<std::ranges::range_difference_t<Values>>(place);
  std::ranges::nth_element(values, found);
  return *found;
}

// The value at index share * (n - 1), rounded, in ascending order. Reorders the values.
// REQUIRES: there are values; 0 <= share <= 1.
template <std::ranges::random_access_range Values>
std::ranges::range_value_t<Values> quantile(Values&& values, double share) {
  DROVER_CHECK(std::ranges::size(values) > 0 && share >= 0.0 && share <= 1.0);
  const auto last = static_cast<double>(std::ranges::size(values) - 1);
  return value_in_order(values, static_cast<size_t>(share * last + 0.5));
}

// The least value that at least `percent` % of the values do not exceed (nearest-rank method).
// Reorders the values. REQUIRES: there are values; percent <= 100.
template <std::ranges::random_access_range Values>
std::ranges::range_value_t<Values> percentile(Values&& values, uint64_t percent) {
  DROVER_CHECK(std::ranges::size(values) > 0 && percent <= 100);
  const uint64_t rank = (std::ranges::size(values) * percent + 99) / 100;
  return value_in_order(values, std::max<uint64_t>(rank, 1) - 1);
}

}  // namespace drover

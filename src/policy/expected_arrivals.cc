#include "policy/expected_arrivals.h"

#include <algorithm>
#include <cstddef>

#include "core/check.h"

namespace drover {

std::vector<ExpectedArrival> expected_arrivals(const Forecast& forecast) {
  DROVER_CHECK(forecast.sorted);
  DROVER_CHECK(forecast.samples >= 1 && forecast.workers >= 1);
  const uint32_t count = std::min(forecast.workers, kExpectedRanksMax);
  std::vector<ExpectedArrival> expected;
  std::vector<float> times(forecast.samples);
  // Of the nearest rank.
  const auto quantile = [&](double share) {
    const auto place = static_cast<std::ptrdiff_t>(share * (forecast.samples - 1) + 0.5);
    std::nth_element(times.begin(), times.begin() + place, times.end());
    return times[static_cast<size_t>(place)];
  };
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t column =
        count > 1 ? static_cast<uint32_t>(uint64_t{i} * (forecast.workers - 1) / (count - 1)) : 0;
    double sum = 0.0;
    for (uint32_t k = 0; k < forecast.samples; ++k) {
      times[k] = forecast.row(k)[column];
      sum += static_cast<double>(times[k]);
    }
    expected.push_back({.rank = column + 1,
                        .mean = static_cast<float>(sum / forecast.samples),
                        .low = quantile(0.1),
                        .high = quantile(0.9)});
  }
  return expected;
}

}  // namespace drover

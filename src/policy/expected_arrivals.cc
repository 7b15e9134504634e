#include "policy/expected_arrivals.h"

#include <algorithm>
#include <cstddef>

#include "core/check.h"
#include "core/quantile.h"

namespace drover {

std::vector<ExpectedArrival> expected_arrivals(const Forecast& forecast) {
  DROVER_CHECK(forecast.sorted);
  DROVER_CHECK(forecast.samples >= 1 && forecast.workers >= 1);
  const uint32_t count = std::min(forecast.workers, kExpectedRanksMax);
  std::vector<ExpectedArrival> expected;
  std::vector<float> times(forecast.samples);
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
                        .low = quantile(times, 0.1),
                        .high = quantile(times, 0.9)});
  }
  return expected;
}

}  // namespace drover

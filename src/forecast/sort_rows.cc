#include "forecast/sort_rows.h"

#include <algorithm>

namespace drover {

void sort_rows(Forecast& forecast) {
  if (forecast.sorted) return;
  for (uint32_t sample = 0; sample < forecast.samples; ++sample) {
    const std::span<float> row = forecast.row(sample);
    std::sort(row.begin(), row.end());
  }
  forecast.sorted = true;
}

}  // namespace drover

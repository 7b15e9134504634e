// What a forecast expects of a step, in a few numbers for the record and for pictures.
#pragma once

#include <vector>

#include "core/run_record.h"
#include "forecast/forecast.h"

namespace drover {

// Ranks that are kept of a forecast, at most: the first, the last, and as many between.
inline constexpr uint32_t kExpectedRanksMax = 24;

// REQUIRES: the forecast is sorted and not empty.
std::vector<ExpectedArrival> expected_arrivals(const Forecast& forecast);

}  // namespace drover

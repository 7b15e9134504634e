// Summarises a forecast in a few numbers per step, for the run record and for charts.
#pragma once

#include <vector>

#include "core/run_record.h"
#include "forecast/forecast.h"

namespace drover {

// Maximum number of ranks in a summary, including the first and the last.
inline constexpr uint32_t kExpectedRanksMax = 24;

// REQUIRES: the forecast is sorted and not empty.
std::vector<ExpectedArrival> expected_arrivals(const Forecast& forecast);

}  // namespace drover

// Sorts every sample of a forecast: run-times become order statistics.
#pragma once

#include "forecast/forecast.h"

namespace drover {

void sort_rows(Forecast& forecast);

}  // namespace drover

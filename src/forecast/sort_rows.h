// Sorts each sample of a forecast, which turns run-times into order statistics.
#pragma once

#include <cstdint>
#include <vector>

#include "forecast/forecast.h"

namespace drover {

// Keeps its buffer, so that repeated sorting allocates nothing.
class RowSorter {
 public:
  void sort(Forecast& forecast);

 private:
  std::vector<uint32_t> keys_;
};

void sort_rows(Forecast& forecast);

}  // namespace drover

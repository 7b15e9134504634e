// The heat map of a run: mean run-times by worker and step, never more than a page can show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "view/buckets.h"

namespace drover {

inline constexpr size_t kHeatColumns = 400;
inline constexpr size_t kHeatRows = 256;

// Which workers are in which row of the heat map.
struct HeatRow {
  WorkerId first = 0;
  WorkerId last = 0;
  uint32_t count = 0;  // fewer than from first to last, if those between are on other nodes
  std::string node;
  bool operator==(const HeatRow&) const = default;
};
struct HeatLayout {
  std::vector<HeatRow> rows;
  std::vector<uint32_t> row_of;  // by worker
  bool operator==(const HeatLayout&) const = default;
};
// One row for each worker, those of a node together; if there are more than kHeatRows, neighbours
// on a node share one. Never more than kHeatRows. `nodes` has a name for each worker.
HeatLayout heat_layout(const std::vector<std::string>& nodes);

// A stretch of steps.
struct HeatColumn {
  Step first = 0;
  struct Cell {
    double sum_s = 0.0;
    uint32_t count = 0;
    uint32_t missed = 0;  // not in time
  };
  std::vector<Cell> cells;  // by row; empty: nothing was added
  void merge(const HeatColumn& later);
};

struct HeatMap {
  uint64_t per = 1;
  std::vector<HeatRow> rows;
  std::vector<Step> step;                   // first of each column
  std::vector<std::vector<double>> time_s;  // by column, then row: mean run-time; NaN: unknown
  std::vector<std::vector<double>> late;    // ... share of those not in time
};
HeatMap heat_map(const Buckets<HeatColumn>& columns, const HeatLayout& layout);

}  // namespace drover

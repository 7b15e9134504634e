// The heat map of a run: mean run-times by worker and step, in at most kHeatRows rows and
// kHeatColumns columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "view/buckets.h"

namespace drover {

inline constexpr size_t kHeatColumns = 400;
inline constexpr size_t kHeatRows = 256;

// The workers in a row of the heat map.
struct HeatRow {
  WorkerId first = 0;
  WorkerId last = 0;
  uint32_t count = 0;  // less than last - first + 1 if workers between are on other nodes
  std::string node;
  bool operator==(const HeatRow&) const = default;
};
struct HeatLayout {
  std::vector<HeatRow> rows;
  std::vector<uint32_t> row_of;  // by worker
  bool operator==(const HeatLayout&) const = default;
};
// One row for each worker, grouped by node. With more than kHeatRows workers, neighbors on a node
// share a row. ENSURES: at most kHeatRows rows. `nodes` has the node of each worker.
HeatLayout heat_layout(const std::vector<std::string>& nodes);

// Run-times in a range of steps.
struct HeatColumn {
  Step first = 0;
  struct Cell {
    double sum_s = 0.0;
    uint32_t count = 0;
    uint32_t missed = 0;  // not in time
  };
  std::vector<Cell> cells;  // by row; empty: no step was added
  void merge(const HeatColumn& later);
};

struct HeatMap {
  uint64_t per = 1;
  std::vector<HeatRow> rows;
  std::vector<Step> step;                   // first step of each column
  std::vector<std::vector<double>> time_s;  // by column, then row: mean run-time; NaN: unknown
  std::vector<std::vector<double>> late;    // by column, then row: share of gradients not in time
};
HeatMap heat_map(const Buckets<HeatColumn>& columns, const HeatLayout& layout);

}  // namespace drover

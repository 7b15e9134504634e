#include "view/heat_map.h"

#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace drover {

void HeatColumn::merge(const HeatColumn& later) {
  if (later.cells.empty()) return;
  if (cells.empty()) {
    *this = later;
    return;
  }
  for (size_t row = 0; row < cells.size(); ++row) {
    cells[row].sum_s += later.cells[row].sum_s;
    cells[row].count += later.cells[row].count;
    cells[row].missed += later.cells[row].missed;
  }
}

HeatLayout heat_layout(const std::vector<std::string>& nodes) {
  // Nodes are in the order of their first workers. By name, node-10 would precede node-2.
  std::map<std::string, size_t> place_of;
  std::vector<std::vector<WorkerId>> by_node;
  for (WorkerId worker = 0; worker < nodes.size(); ++worker) {
    const auto [place, is_new] = place_of.emplace(nodes[worker], by_node.size());
    if (is_new) by_node.emplace_back();
    by_node[place->second].push_back(worker);
  }
  // With more nodes than rows, workers of several nodes share rows, in the order of workers.
  const bool by_themselves = by_node.size() <= kHeatRows;
  if (!by_themselves) {
    by_node.assign(1, std::vector<WorkerId>(nodes.size()));
    std::iota(by_node.front().begin(), by_node.front().end(), WorkerId{0});
  }
  const auto rows_with = [&by_node](size_t share) {
    size_t rows = 0;
    for (const auto& workers : by_node) rows += (workers.size() + share - 1) / share;
    return rows;
  };
  size_t share = 1;
  while (rows_with(share) > kHeatRows) ++share;
  HeatLayout layout;
  layout.row_of.resize(nodes.size());
  for (const auto& workers : by_node) {
    for (size_t i = 0; i < workers.size(); ++i) {
      if (i % share == 0)
        layout.rows.push_back(
            {.first = workers[i], .node = by_themselves ? nodes[workers[i]] : ""});
      layout.rows.back().last = workers[i];
      ++layout.rows.back().count;
      layout.row_of[workers[i]] = static_cast<uint32_t>(layout.rows.size() - 1);
    }
  }
  return layout;
}

HeatMap heat_map(const Buckets<HeatColumn>& columns, const HeatLayout& layout) {
  HeatMap map{.per = columns.per(), .rows = layout.rows, .step = {}, .time_s = {}, .late = {}};
  for (const HeatColumn& column : columns.all()) {
    if (column.cells.empty()) continue;
    map.step.push_back(column.first);
    std::vector<double> times;
    std::vector<double> late;
    for (const HeatColumn::Cell& cell : column.cells) {
      times.push_back(cell.count > 0 ? cell.sum_s / cell.count : std::nan(""));
      late.push_back(cell.count > 0 ? static_cast<double>(cell.missed) / cell.count : 0.0);
    }
    map.time_s.push_back(std::move(times));
    map.late.push_back(std::move(late));
  }
  return map;
}

}  // namespace drover

#include "sim/scenario.h"

#include <algorithm>

namespace drover {

uint32_t Scenario::node_of(WorkerId worker) const {
  uint32_t node = 0;
  for (const uint32_t size : nodes) {
    if (worker < size) return node;
    worker -= size;
    ++node;
  }
  return 0;
}

bool Scenario::concerns(const WorkerSelector& selector, WorkerId worker) const {
  if (selector.node && node_of(worker) != *selector.node) return false;
  return !selector.workers ||
         (selector.workers->first <= worker && worker <= selector.workers->second);
}

bool Scenario::joins_later(WorkerId worker) const {
  const auto is_it = [&](const auto& each) { return each.worker == worker; };
  return std::any_of(joins.begin(), joins.end(), is_it) &&
         std::none_of(deaths.begin(), deaths.end(), is_it);
}

std::string node_name(uint32_t node) { return "node" + std::to_string(node); }

}  // namespace drover

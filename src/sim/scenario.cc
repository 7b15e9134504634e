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

bool Scenario::concerns(const Whom& whom, WorkerId worker) const {
  if (whom.node && node_of(worker) != *whom.node) return false;
  return !whom.workers || (whom.workers->first <= worker && worker <= whom.workers->second);
}

bool Scenario::joins_later(WorkerId worker) const {
  const auto is_it = [&](const auto& each) { return each.worker == worker; };
  return std::any_of(joins.begin(), joins.end(), is_it) &&
         std::none_of(deaths.begin(), deaths.end(), is_it);
}

std::string node_name(uint32_t node) { return "node" + std::to_string(node); }

}  // namespace drover

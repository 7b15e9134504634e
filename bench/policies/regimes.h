// Made-up clusters, by name: what policies are compared on when no recording is at hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/ids.h"
#include "store/trace.h"

namespace drover {

struct Regime {
  std::string_view name;
  std::string_view summary;  // one line
  Step steps = 0;
  double (*run_time)(struct Cluster& cluster, Step step, WorkerId worker) = nullptr;
};

std::span<const Regime> regimes();

// Run-times of a cluster of that kind. Equal arguments give equal traces. REQUIRES: workers >= 2.
Trace make_regime(const Regime& regime, uint32_t workers, uint64_t seed);

}  // namespace drover

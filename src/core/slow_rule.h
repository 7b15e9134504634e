// SlowRule: injected slowness: which workers, in which steps, and by how much.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "core/ids.h"
#include "core/time.h"

namespace drover {

// core/slowness.h reads and writes its text form.
struct SlowRule {
  static constexpr double kFactorMax = 1e6;
  static constexpr Duration kDelayMax = std::chrono::hours(1);

  std::optional<std::pair<WorkerId, WorkerId>> workers;  // first and last; absent: all
  std::optional<std::pair<Step, Step>> steps;            // first and last; absent: all
  double share = 1.0;   // share of (step, worker) pairs that the rule applies to, drawn by seed
  double factor = 1.0;  // multiplies the time of computing
  Duration delay{};     // added before computing

  bool operator==(const SlowRule&) const = default;
};

}  // namespace drover

// LearningRules: how shards turn gradients into updates of the parameters, and how they treat
// gradients with much larger norms than the others.
#pragma once

#include <cstdint>

#include "core/training.h"

namespace drover {

// What happens to a gradient that is an outlier.
enum class GuardRule : uint8_t {
  kOff,     // it is used unchanged
  kNorm,    // it is clipped to the typical norm, and used
  kRefuse,  // it is dropped
};

// A gradient is an outlier if its norm is this number of standard deviations above the typical
// norm.
inline constexpr double kGuardFactor = 5.0;
inline constexpr double kGuardFactorMin = 1.0;
inline constexpr double kGuardFactorMax = 1000.0;
// With fewer workers it is undecidable which of them sends the outlier.
inline constexpr uint32_t kGuardWorkersMin = 3;

struct LearningRules {
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  bool deterministic = false;  // sum in the order of workers, so that runs repeat bit for bit
  GuardRule guard = GuardRule::kOff;
  double guard_factor = kGuardFactor;  // in standard deviations

  bool operator==(const LearningRules&) const = default;
};

}  // namespace drover

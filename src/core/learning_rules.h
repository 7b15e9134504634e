// LearningRules: how a run's shards turn gradients into updates of the parameters, and what becomes
// of gradients that are far longer than the others.
#pragma once

#include <cstdint>

#include "core/training.h"

namespace drover {

enum class GuardRule : uint8_t {
  kOff,     // it is used like any other
  kNorm,    // it is made as short as is usual, and used
  kRefuse,  // it is not used
};

// Deviations above the usual length from which on a gradient is an outlier.
inline constexpr double kGuardFactor = 5.0;
inline constexpr double kGuardFactorMin = 1.0;
inline constexpr double kGuardFactorMax = 1000.0;
// With fewer workers nobody can tell who is out of line.
inline constexpr uint32_t kGuardWorkersMin = 3;

struct LearningRules {
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  bool deterministic = false;  // sum in the order of workers, so that a run repeats bit for bit
  GuardRule guard = GuardRule::kOff;   // what becomes of gradients that are out of line ...
  double guard_factor = kGuardFactor;  // ... by so many deviations

  bool operator==(const LearningRules&) const = default;
};

}  // namespace drover

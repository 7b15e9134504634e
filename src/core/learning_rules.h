// LearningRules: how a run's shards turn gradients into updates of the parameters.
#pragma once

#include "core/guard_rule.h"
#include "core/training.h"

namespace drover {

struct LearningRules {
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  bool deterministic = false;  // sum in the order of workers, so that a run repeats bit for bit
  GuardRule guard = GuardRule::kOff;   // what becomes of gradients that are out of line ...
  double guard_factor = kGuardFactor;  // ... by so many deviations

  bool operator==(const LearningRules&) const = default;
};

}  // namespace drover

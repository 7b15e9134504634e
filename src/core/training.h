// How a run learns: optimiser, learning-rate schedule, averaging. Plain settings, checked where
// they are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "core/result.h"

namespace drover {

enum class OptimizerKind : uint8_t { kSgd, kMomentum, kNesterov, kRmsProp, kAdam, kAdamW };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.9;      // momentum, Nesterov; RMSProp uses `rms_momentum`
  double rms_decay = 0.9;     // RMSProp
  double rms_momentum = 0.0;  // RMSProp
  double beta1 = 0.9;         // Adam, AdamW
  double beta2 = 0.999;       // Adam, AdamW
  double epsilon = 1e-8;      // RMSProp, Adam, AdamW
  double weight_decay = 0.0;  // added to the gradient; for AdamW decoupled from it
  double ema_decay = 0.0;     // of the parameters evaluated; 0: evaluate the parameters themselves
  bool operator==(const OptimizerSettings&) const = default;
};

enum class ScheduleKind : uint8_t { kConstant, kStep, kCosine };

// What becomes of the learning rate when fewer samples are behind an update than were planned.
enum class RateRule : uint8_t { kNone, kLinear, kSqrt, kAdaScale };

struct ScheduleSettings {
  ScheduleKind kind = ScheduleKind::kConstant;
  double base = 0.05;         // the learning rate after the warm-up
  Step warmup_steps = 0;      // linear from base / warmup_steps up to base
  Step decay_every = 0;       // kStep: multiply by decay_factor each so many steps
  double decay_factor = 0.1;  // kStep
  double floor = 0.0;         // kCosine: what the learning rate ends at
  Step total_steps = 0;       // kCosine: where it ends
  RateRule rule = RateRule::kNone;
  bool operator==(const ScheduleSettings&) const = default;
};

// The learning rate of step `step`.
double learning_rate(const ScheduleSettings& schedule, Step step);

std::string_view name_of(OptimizerKind kind);
std::string_view name_of(ScheduleKind kind);
// An unknown name is answered with the nearest known one.
Result<OptimizerKind> parse_optimizer(std::string_view name);
Result<ScheduleKind> parse_schedule(std::string_view name);

}  // namespace drover

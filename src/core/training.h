// Settings of learning: optimiser, learning-rate schedule, averaging. They are validated where they
// are parsed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
  double ema_decay = 0.0;     // evaluate a moving average of the parameters; 0: no average
  bool operator==(const OptimizerSettings&) const = default;
};

enum class ScheduleKind : uint8_t { kConstant, kStep, kCosine };

// How the learning rate is scaled when an update has fewer samples than planned; see rate_factor().
enum class RateRule : uint8_t { kNone, kLinear, kSqrt, kAdaScale };

struct ScheduleSettings {
  ScheduleKind kind = ScheduleKind::kConstant;
  double base = 0.05;         // the learning rate after the warm-up
  Step warmup_steps = 0;      // linear from base / warmup_steps up to base
  Step decay_every = 0;       // kStep: steps between multiplications by decay_factor
  double decay_factor = 0.1;  // kStep
  double floor = 0.0;         // kCosine: the final learning rate
  Step total_steps = 0;       // kCosine: the step at which the schedule ends
  RateRule rule = RateRule::kNone;
  bool operator==(const ScheduleSettings&) const = default;
};

// Learning settings of a worker that brings its own model. The other settings are the run's.
struct Learning {
  OptimizerSettings optimizer;
  double rate = 0.05;  // learning rate of the first step, and until the worker reports another
  bool operator==(const Learning&) const = default;
};

// How one group of tensors is learned in a step, where scripts say so.
struct GroupSettings {
  double rate = 0.0;
  OptimizerSettings optimizer;  // but for ema_decay, which is the run's
  bool operator==(const GroupSettings&) const = default;
};

// The learning rate of step `step`.
double learning_rate(const ScheduleSettings& schedule, Step step);

// The factor on the learning rate of an update with M samples, if the schedule is meant for T
// samples. With phi the noise scale of the gradients (in samples; core/gradient_noise.h):
//
//   none      1
//   linear    M / T
//   sqrt      sqrt(M / T)
//   adascale  r(M) / r(T) = (M / T) (phi + T) / (phi + M)
//
// AdaScale (Johnson et al. 2020) multiplies the learning rate of one batch, whose gradient has
// variance sigma^2 = tr(Sigma) / m around a mean of length mu, by the gain of S such batches,
//   r = (sigma^2 + mu^2) / (sigma^2 / S + mu^2).
// With S = M / m and phi = tr(Sigma) / mu^2 that is r(M) = M (phi + m) / (m (phi + M)), and m
// cancels in the ratio. Its limits are `linear` for noise only (phi = infinity) and `none` for no
// noise (phi = 0).
//
// Exactly 1 for M = T with every rule, for unknown T (full_samples = 0), and with `adascale` for
// unknown phi (noise_scale = 0).
double rate_factor(RateRule rule, double samples, double full_samples, double noise_scale);

// Settings that must not change when a run is resumed, by their names in job files, with values
// that parse to the same bits. Omitted are settings that the chosen kind does not use, and the step
// at which a schedule ends.
using SettingTexts = std::map<std::string, std::string>;
SettingTexts texts_of(const OptimizerSettings& optimizer);
SettingTexts texts_of(const ScheduleSettings& schedule);
// The settings in `now` that are different or missing in `then`: "momentum was 0.9 and is now
// 0.95".
std::optional<std::string> differences(const SettingTexts& then, const SettingTexts& now);

std::string_view name_of(OptimizerKind kind);
std::string_view name_of(ScheduleKind kind);
std::string_view name_of(RateRule rule);
// The error for an unknown name has the nearest known one.
Result<OptimizerKind> parse_optimizer(std::string_view name);
Result<ScheduleKind> parse_schedule(std::string_view name);
Result<RateRule> parse_rate_rule(std::string_view name);

}  // namespace drover

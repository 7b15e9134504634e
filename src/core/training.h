// How a run learns: optimiser, learning-rate schedule, averaging. Plain settings, checked where
// they are read.
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
  double ema_decay = 0.0;     // of the parameters evaluated; 0: evaluate the parameters themselves
  bool operator==(const OptimizerSettings&) const = default;
};

enum class ScheduleKind : uint8_t { kConstant, kStep, kCosine };

// What becomes of the learning rate when fewer samples are behind an update than were planned; see
// rate_factor().
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

// What a worker that brings its own model says of how to learn: the rest is the run's.
struct Learning {
  OptimizerSettings optimizer;
  double rate = 0.05;  // of the first step, and of those in which it says no other
  bool operator==(const Learning&) const = default;
};

// The learning rate of step `step`.
double learning_rate(const ScheduleSettings& schedule, Step step);

// What the learning rate of an update with M samples behind it is multiplied with, when the
// schedule is meant for T. With phi the noise scale of the gradients (samples;
// core/gradient_noise.h):
//
//   none      1
//   linear    M / T
//   sqrt      sqrt(M / T)
//   adascale  r(M) / r(T) = (M / T) (phi + T) / (phi + M)
//
// AdaScale (Johnson et al. 2020) multiplies the learning rate of one batch, whose gradient has
// variance sigma^2 = tr(Sigma) / m around a mean of length mu, by the gain of S such batches,
//   r = (sigma^2 + mu^2) / (sigma^2 / S + mu^2).
// With S = M / m and phi = tr(Sigma) / mu^2 that is r(M) = M (phi + m) / (m (phi + M)), and in the
// ratio m cancels. It lies between the others' ends: noise only (phi = infinity) makes it linear,
// no noise (phi = 0) none.
//
// 1 for M = T to the bit, whatever the rule; 1 for `adascale` as long as phi is not known
// (noise_scale = 0), and if T is not (full_samples = 0).
double rate_factor(RateRule rule, double samples, double full_samples, double noise_scale);

// What decides how a run goes on learning, by the names that job files have for it, with values
// that read back to the bit. What the kind chosen does not use is left out, and so is where a
// schedule ends.
using SettingTexts = std::map<std::string, std::string>;
SettingTexts texts_of(const OptimizerSettings& optimizer);
SettingTexts texts_of(const ScheduleSettings& schedule);
// "momentum was 0.9 and is now 0.95": what of `now` `then` has otherwise, or has not.
std::optional<std::string> differences(const SettingTexts& then, const SettingTexts& now);

std::string_view name_of(OptimizerKind kind);
std::string_view name_of(ScheduleKind kind);
std::string_view name_of(RateRule rule);
// An unknown name is answered with the nearest known one.
Result<OptimizerKind> parse_optimizer(std::string_view name);
Result<ScheduleKind> parse_schedule(std::string_view name);
Result<RateRule> parse_rate_rule(std::string_view name);

}  // namespace drover

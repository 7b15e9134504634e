#include "core/training.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/nearest.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 6> kOptimizerNames = {"sgd",     "momentum", "nesterov",
                                                             "rmsprop", "adam",     "adamw"};
constexpr std::array<std::string_view, 3> kScheduleNames = {"constant", "step", "cosine"};
constexpr std::array<std::string_view, 4> kRuleNames = {"none", "linear", "sqrt", "adascale"};

template <typename Kind, size_t kCount>
Result<Kind> parse(std::string_view name, const std::array<std::string_view, kCount>& names,
                   const std::string& what) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Kind>(i);
  }
  std::string known;
  for (const std::string_view each : names)
    known += (known.empty() ? "" : ", ") + std::string(each);
  return invalid_input("unknown " + what + " '" + std::string(name) + "'." +
                       did_you_mean(name, names) + " Known: " + known + ".");
}

double after_warmup(const ScheduleSettings& schedule, Step step) {
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return schedule.base;
    case ScheduleKind::kStep: {
      if (schedule.decay_every == 0) return schedule.base;
      const Step decays = step / schedule.decay_every;
      return schedule.base * std::pow(schedule.decay_factor, static_cast<double>(decays));
    }
    case ScheduleKind::kCosine: {
      // floor + (base - floor) (1 + cos(pi t / T)) / 2, with t counted from the end of the warm-up.
      if (schedule.total_steps <= schedule.warmup_steps) return schedule.base;
      const double span = static_cast<double>(schedule.total_steps - schedule.warmup_steps);
      const double progress =
          std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / span);
      return schedule.floor +
             (schedule.base - schedule.floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    }
  }
  return schedule.base;
}

// The shortest text that parses to the same bits.
std::string exact(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace

SettingTexts texts_of(const OptimizerSettings& optimizer) {
  SettingTexts texts = {{"optimizer", std::string(name_of(optimizer.kind))},
                        {"weight_decay", exact(optimizer.weight_decay)},
                        {"ema", exact(optimizer.ema_decay)}};
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      break;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
      texts["momentum"] = exact(optimizer.momentum);
      break;
    case OptimizerKind::kRmsProp:
      texts["rms_decay"] = exact(optimizer.rms_decay);
      texts["rms_momentum"] = exact(optimizer.rms_momentum);
      texts["epsilon"] = exact(optimizer.epsilon);
      break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      texts["beta1"] = exact(optimizer.beta1);
      texts["beta2"] = exact(optimizer.beta2);
      texts["epsilon"] = exact(optimizer.epsilon);
      break;
  }
  return texts;
}

SettingTexts texts_of(const ScheduleSettings& schedule) {
  SettingTexts texts = {{"schedule", std::string(name_of(schedule.kind))},
                        {"lr", exact(schedule.base)},
                        {"lr_warmup", std::to_string(schedule.warmup_steps)},
                        {"lr_rule", std::string(name_of(schedule.rule))}};
  if (schedule.kind == ScheduleKind::kStep) {
    texts["lr_decay_every"] = std::to_string(schedule.decay_every);
    texts["lr_decay_factor"] = exact(schedule.decay_factor);
  }
  if (schedule.kind == ScheduleKind::kCosine) texts["lr_floor"] = exact(schedule.floor);
  return texts;
}

std::optional<std::string> differences(const SettingTexts& then, const SettingTexts& now) {
  std::string all;
  for (const auto& [name, text] : now) {
    const auto found = then.find(name);
    if (found != then.end() && found->second == text) continue;
    std::string one = found == then.end() ? name + " was not set and is now " + text
                                          : name + " was " + found->second + " and is now " + text;
    // With another kind of optimizer or schedule all its settings differ; the kind is enough.
    if (name == "optimizer" || name == "schedule") return one;
    all += (all.empty() ? "" : "; ") + one;
  }
  return all.empty() ? std::nullopt : std::optional(all);
}

double learning_rate(const ScheduleSettings& schedule, Step step) {
  if (step < schedule.warmup_steps) {
    return schedule.base * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmup_steps);
  }
  return after_warmup(schedule, step);
}

double rate_factor(RateRule rule, double samples, double full_samples, double noise_scale) {
  if (full_samples <= 0.0) return 1.0;
  const double share = samples / full_samples;
  switch (rule) {
    case RateRule::kNone:
      return 1.0;
    case RateRule::kLinear:
      return share;
    case RateRule::kSqrt:
      return std::sqrt(share);
    case RateRule::kAdaScale:
      if (noise_scale <= 0.0) return 1.0;
      return share * ((noise_scale + full_samples) / (noise_scale + samples));
  }
  return 1.0;
}

std::string_view name_of(OptimizerKind kind) { return kOptimizerNames[static_cast<size_t>(kind)]; }
std::string_view name_of(ScheduleKind kind) { return kScheduleNames[static_cast<size_t>(kind)]; }
std::string_view name_of(RateRule rule) { return kRuleNames[static_cast<size_t>(rule)]; }

Result<OptimizerKind> parse_optimizer(std::string_view name) {
  return parse<OptimizerKind>(name, kOptimizerNames, "optimizer");
}
Result<ScheduleKind> parse_schedule(std::string_view name) {
  return parse<ScheduleKind>(name, kScheduleNames, "schedule");
}
Result<RateRule> parse_rate_rule(std::string_view name) {
  return parse<RateRule>(name, kRuleNames, "learning-rate rule");
}

}  // namespace drover

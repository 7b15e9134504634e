#include "core/former_settings.h"

#include <algorithm>
#include <array>

namespace drover {
namespace {

struct FormerSetting {
  std::string_view name;
  std::string_view now;  // empty: removed
  std::string_view why;  // if it was removed
};

constexpr std::array<FormerSetting, 21> kFormerSettings = {{
    {"optimizer.kind", "optimizer", ""},
    {"optimizer.momentum", "momentum", ""},
    {"optimizer.weight_decay", "weight_decay", ""},
    {"optimizer.ema_decay", "ema", ""},
    {"optimizer.beta1", "beta1", ""},
    {"optimizer.beta2", "beta2", ""},
    {"optimizer.epsilon", "epsilon", ""},
    {"optimizer.rms_decay", "rms_decay", ""},
    {"optimizer.rms_momentum", "rms_momentum", ""},
    {"schedule.kind", "schedule", ""},
    {"schedule.lr", "lr", ""},
    {"schedule.warmup_steps", "lr_warmup", ""},
    {"schedule.decay_every", "lr_decay_every", ""},
    {"schedule.decay_factor", "lr_decay_factor", ""},
    {"schedule.floor", "lr_floor", ""},
    {"schedule.rule", "lr_rule", ""},
    {"warmup", "lr_warmup", ""},
    {"warmup", "policy_warmup", ""},
    {"decay_every", "lr_decay_every", ""},
    {"decay_factor", "lr_decay_factor", ""},
    {"decide_every", "", "every step is decided, which costs no time: leave it out"},
}};

}  // namespace

std::string_view current_setting_name(std::string_view name) {
  const auto* const former =
      std::find_if(kFormerSettings.begin(), kFormerSettings.end(),
                   [&](const FormerSetting& each) { return each.name == name; });
  return former == kFormerSettings.end() || former->now.empty() ? name : former->now;
}

std::optional<std::string> successor_of_setting(
    std::string_view name, const std::function<bool(std::string_view)>& exists) {
  for (const FormerSetting& former : kFormerSettings) {
    if (former.name != name) continue;
    if (former.now.empty()) return "was removed: " + std::string(former.why);
    if (!exists || exists(former.now)) return "is now " + std::string(former.now);
  }
  return std::nullopt;
}

}  // namespace drover

#include "core/target.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/nearest.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"accuracy", "loss"};

}  // namespace

std::string_view name_of(TargetKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<Target> parse_target(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (name != kNames[0] && name != kNames[1]) {
    return invalid_input("must be a target such as accuracy=0.97 or loss=0.2, not '" +
                         std::string(text) + "'." + did_you_mean(name, kNames));
  }
  Target target{.kind = name == kNames[0] ? TargetKind::kAccuracy : TargetKind::kLoss};
  const std::string_view number = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const char* const end = number.data() + number.size();
  const auto [stop, trouble] = std::from_chars(number.data(), end, target.value);
  if (trouble != std::errc{} || stop != end || !std::isfinite(target.value)) {
    return invalid_input(std::string(name) + " needs a number, such as " + std::string(name) +
                         (target.kind == TargetKind::kLoss ? "=0.2" : "=0.97") + ", not '" +
                         std::string(text) + "'");
  }
  if (target.kind == TargetKind::kLoss && !(target.value > 0.0))
    return invalid_input("a loss must be more than 0 to be reached, not '" + std::string(text) +
                         "'");
  if (target.kind == TargetKind::kAccuracy && !(target.value > 0.0 && target.value <= 1.0)) {
    return invalid_input(
        "an accuracy is a share, more than 0 and at most 1 (0.97 for 97 %), not '" +
        std::string(text) + "'");
  }
  return target;
}

std::string to_text(const Target& target) {
  std::array<char, 32> number{};
  const auto [end, trouble] =
      std::to_chars(number.data(), number.data() + number.size(), target.value);
  return std::string(name_of(target.kind)) + "=" + std::string(number.data(), end);
}

}  // namespace drover

#include "core/percent.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/check.h"

namespace drover {
namespace {

// Large enough for every double.
using Text = std::array<char, 400>;

}  // namespace

std::string percent(double share, int decimals) {
  if (!std::isfinite(100.0 * share)) return "-";
  Text text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f %%", decimals, 100.0 * share);
  DROVER_CHECK(length > 0 && static_cast<size_t>(length) < text.size());
  return text.data();
}

std::string short_percent(double share) {
  const double rounded = std::round(share * 1000.0) / 10.0;
  // As many digits as a number below 1000 needs.
  const bool large = std::abs(rounded) >= 1000.0 && std::abs(rounded) < 1e9;
  Text text{};
  const int length =
      std::snprintf(text.data(), text.size(), large ? "%.0f %%" : "%.3g %%", rounded);
  DROVER_CHECK(length > 0 && static_cast<size_t>(length) < text.size());
  return text.data();
}

}  // namespace drover

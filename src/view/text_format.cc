#include "view/text_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/text.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

}  // namespace

std::string amount(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "-" : "infinity";
  if (value >= 100.0 && value < 1e18)
    return with_commas(static_cast<uint64_t>(std::llround(value)));
  return fmt::format("{:.3g}", value);
}

std::string short_time(Duration time) {
  const double value = seconds(time);
  const double size = std::abs(value);
  if (size >= 1.0) return fmt::format("{:.2f} s", value);
  if (size >= 1e-3) return fmt::format("{:.3g} ms", value * 1e3);
  return fmt::format("{:.3g} µs", value * 1e6);
}

std::string long_time(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 120.0) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<uint64_t>(seconds);
  if (whole < 7200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string bytes(uint64_t value) {
  const double size = static_cast<double>(value);
  if (size >= 1e9) return fmt::format("{:.2f} GB", size / 1e9);
  return fmt::format("{:.0f} MB", size / 1e6);
}

std::string plural(uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(number), noun, number == 1 ? "" : "s");
}

std::string sparkline(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string line;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      line += "×";
      continue;
    }
    // Halved before subtracting, because the difference of two finite numbers can overflow.
    const double span = high / 2.0 - low / 2.0;
    const double level = span > 0.0 ? (value / 2.0 - low / 2.0) / span : 0.0;
    const size_t last = kBlocks.size() - 1;
    line +=
        kBlocks[std::min(last, static_cast<size_t>(level * static_cast<double>(kBlocks.size())))];
  }
  return line;
}

}  // namespace drover

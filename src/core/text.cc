#include "core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "core/check.h"

namespace drover {

std::string with_commas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

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
  // Enough digits for a number below 1000.
  const bool large = std::abs(rounded) >= 1000.0 && std::abs(rounded) < 1e9;
  Text text{};
  const int length =
      std::snprintf(text.data(), text.size(), large ? "%.0f %%" : "%.3g %%", rounded);
  DROVER_CHECK(length > 0 && static_cast<size_t>(length) < text.size());
  return text.data();
}

std::string csv_quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string shell_quoted(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return plain ? text : "'" + text + "'";
}

}  // namespace drover

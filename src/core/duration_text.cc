#include "core/duration_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/check.h"

namespace drover {
namespace {

struct Unit {
  std::string_view name;
  Duration length;
};
// Largest first, so that duration_text() finds the shortest exact form.
constexpr std::array<Unit, 4> kUnits = {{{"s", std::chrono::seconds(1)},
                                         {"ms", std::chrono::milliseconds(1)},
                                         {"us", std::chrono::microseconds(1)},
                                         {"ns", std::chrono::nanoseconds(1)}}};
constexpr Duration kCentury = std::chrono::hours(24 * 365 * 100);

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  const size_t unit_begin = text.find_first_not_of("0123456789.");
  if (unit_begin == std::string_view::npos) return std::nullopt;
  double value = 0.0;
  const std::string number(text.substr(0, unit_begin));
  const char* const stop = number.data() + number.size();
  const auto [end, trouble] = std::from_chars(number.data(), stop, value);
  if (trouble != std::errc{} || end != stop) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (text.substr(unit_begin) != unit.name) continue;
    const double nanoseconds = std::round(value * static_cast<double>(unit.length.count()));
    if (nanoseconds > static_cast<double>(kCentury.count())) return std::nullopt;
    return Duration(static_cast<int64_t>(nanoseconds));
  }
  return std::nullopt;
}

std::string duration_text(Duration duration) {
  DROVER_CHECK(duration >= Duration::zero());
  for (const Unit& unit : kUnits) {
    if (duration % unit.length == Duration::zero()) {
      return std::to_string(duration / unit.length) + std::string(unit.name);
    }
  }
  return {};  // not reached: every duration is a whole number of nanoseconds
}

}  // namespace drover

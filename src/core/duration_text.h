// Durations as text: 200ms, 1.5s, 10us.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace drover {

// nullopt if `text` is not a number with a unit (s, ms, us or ns), or is more than a century.
std::optional<Duration> parse_duration(std::string_view text);

// The shortest whole number with a unit that parses to the same duration: "200ms".
// REQUIRES: duration >= 0.
std::string duration_text(Duration duration);

}  // namespace drover

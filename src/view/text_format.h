// Formats numbers for people, with few digits and with units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace drover {

std::string amount(double value);       // three or four digits: "81,234", "812", "81.2", "0.812"
std::string short_time(Duration time);  // "1.50 s", "62.6 ms", "100 µs"
std::string long_time(double seconds);  // "2 s", "12 min 37 s", "3 h 05 min"; "-": unknown
std::string bytes(uint64_t value);      // "250 MB"
std::string plural(uint64_t number, std::string_view noun);  // "1 step", "1,000 steps"

// `values` as a line of block characters, scaled from the lowest to the highest value; NaN and
// infinity are '×'.
std::string sparkline(const std::vector<double>& values);

}  // namespace drover

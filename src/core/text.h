// Text formatting: numbers with commas, percentages, quoting for CSV and a shell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace drover {

// 1234567 -> "1,234,567"
std::string with_commas(uint64_t number);

// 0.0423 -> "4.2 %", with two decimals "4.23 %"; "-" if `share` is not finite.
std::string percent(double share, int decimals = 1);

// At most one decimal, without trailing zero: 0.0423 -> "4.2 %", 0.12 -> "12 %", 1.234 -> "123 %".
std::string short_percent(double share);

// In quotes if it has a comma, a quote or a line break.
std::string csv_quoted(std::string_view text);

// In single quotes if `text` has anything but letters, digits and / . - _
std::string shell_quoted(const std::string& text);

}  // namespace drover

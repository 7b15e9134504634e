// Shares as people read them.
#pragma once

#include <string>

namespace drover {

// 0.0423 -> "4.2 %", with two decimals "4.23 %"; "-" for what is not a finite number.
std::string percent(double share, int decimals = 1);

// At most one decimal, and none that is zero: 0.0423 -> "4.2 %", 0.12 -> "12 %", 1.234 -> "123 %".
std::string short_percent(double share);

}  // namespace drover

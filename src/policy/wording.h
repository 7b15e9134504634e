// Text for the reasons of decisions: numbers of workers, times and rates with their units.
#pragma once

#include <cstdint>
#include <string>

#include "policy/policy.h"

namespace drover {

// At least three significant digits: 12.34 -> "12.3", 8109.6 -> "8,110".
std::string number_text(double number);

// "50.6 ms", "6.78 s"; of an unknown unit "6,783 time units".
std::string time_text(double time, TimeUnit unit);

// "1,240 gradients/s"; of an unknown unit "0.006 gradients per time unit".
std::string rate_text(double gradients_per_time, TimeUnit unit);

// "94 of 98", "all 98 workers", "the only worker".
std::string worker_count_text(uint32_t count, uint32_t alive);

// " or 6.78 s", to follow a number of workers; empty without a limit.
std::string time_limit_text(double time_limit, TimeUnit unit);

}  // namespace drover

// Words and numbers that the reasons of several policies share.
#pragma once

#include <cstdint>
#include <string>

namespace drover {

// Three digits are enough for a reason: 12.34 -> "12.3", 8109.6 -> "8110".
std::string brief(double number);

// "94 of 98 workers", "all 98 workers", "the only worker".
std::string so_many(uint32_t count, uint32_t alive);

}  // namespace drover

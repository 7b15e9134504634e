// Numbers as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace drover {

// 1234567 -> "1,234,567"
std::string with_commas(uint64_t number);

}  // namespace drover

// How many blocks a share of them is: whoever waits for a share, and whoever counts on that, must
// agree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace drover {

// At least one. A share that was made of a number of blocks is that number. REQUIRES: share > 0,
// blocks > 0.
inline uint32_t blocks_needed(double share, uint32_t blocks) {
  constexpr double kRounding = 1e-9;
  const double needed = std::ceil(share * static_cast<double>(blocks) - kRounding);
  return std::clamp(static_cast<uint32_t>(std::max(needed, 1.0)), 1u, blocks);
}

}  // namespace drover

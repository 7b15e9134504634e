// GuardRule: what becomes of a gradient that is far longer than those of the others.
#pragma once

#include <cstdint>

namespace drover {

enum class GuardRule : uint8_t {
  kOff,     // it is used like any other
  kNorm,    // it is made as short as is usual, and used
  kRefuse,  // it is not used
};

// Deviations above the usual length from which on a gradient is an outlier.
inline constexpr double kGuardFactor = 5.0;
inline constexpr double kGuardFactorMin = 1.0;
inline constexpr double kGuardFactorMax = 1000.0;
// With fewer workers nobody can tell who is out of line.
inline constexpr uint32_t kGuardWorkersMin = 3;

}  // namespace drover

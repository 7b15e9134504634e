// The real clock. Only this file reads it.
#pragma once

#include <chrono>

#include "core/time.h"

namespace drover {

// Monotonic. Its origin differs between machines.
inline TimePoint clock_now() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace drover

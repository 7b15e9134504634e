// The real clock: the only place that asks it.
#pragma once

#include <chrono>

#include "core/time.h"

namespace drover {

// Steady, since an origin that differs from machine to machine.
inline TimePoint clock_now() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace drover

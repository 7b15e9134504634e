// Time: nanoseconds since a fixed moment of one process.
//
// State machines receive the time with each input. Only `node` reads a real clock.
#pragma once

#include <chrono>

namespace drover {

using Duration = std::chrono::nanoseconds;

// Elapsed since the process's origin. Not comparable between processes.
using TimePoint = Duration;

inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration from_seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace drover

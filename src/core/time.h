// Time, as everybody here speaks of it: nanoseconds since some fixed moment of one process.
//
// State machines are told the time; only `node` asks a real clock.
#pragma once

#include <chrono>

namespace drover {

using Duration = std::chrono::nanoseconds;

// Elapsed since the process's own origin. Never compared between processes.
using TimePoint = Duration;

inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
inline Duration from_seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace drover

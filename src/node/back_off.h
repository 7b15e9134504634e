// BackOff: how long to wait before the next attempt to rejoin a run, and when to give up.
//
// Exponential with jitter: members that lost the same coordinator at the same moment do not all
// reconnect at the same moment.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/time.h"

namespace drover {

class BackOff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::seconds(5);

  // Gives up when attempts have failed for `patience`. Zero: one retry, without a wait.
  explicit BackOff(Duration patience) : patience_(patience) {}

  // An attempt has joined the run: the next wait is the shortest again.
  void on_joined() { attempts_ = 0; }

  // An attempt has failed, or a membership has ended: returns how long to wait before the next
  // attempt. Nothing: give up. REQUIRES: `fraction`, the jitter, is in [0, 1).
  std::optional<Duration> next(TimePoint now, double fraction) {
    if (attempts_ == 0) trying_since_ = now;
    const int attempt = attempts_++;
    if (patience_ == Duration::zero())
      return attempt == 0 ? std::optional(Duration::zero()) : std::nullopt;
    if (now - trying_since_ >= patience_) return std::nullopt;
    const Duration most = std::min(kLongest, kFirst * (int64_t{1} << std::min(attempt, 20)));
    return std::chrono::duration_cast<Duration>(most * (0.5 + 0.5 * fraction));
  }

 private:
  const Duration patience_;
  TimePoint trying_since_{};
  int attempts_ = 0;  // since trying_since_
};

}  // namespace drover

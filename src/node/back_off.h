// BackOff: how long to wait before the next attempt to join a run again, and when to give up.
//
// Waits double from one to the next, and each is a random part of what it could be: members that
// have lost the same coordinator at the same moment do not all come back at the same moment.
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

  // Gives up when `patience` has passed in vain. Zero: only somebody who was in may try again, at
  // once, and once.
  explicit BackOff(Duration patience) : patience_(patience) {}

  // An attempt was successful: what comes now begins anew.
  void was_in() { attempts_ = 0; }

  // An attempt has failed, or what it led to has ended: how long to wait before the next, with
  // `chance` in [0, 1). Nothing: give up.
  std::optional<Duration> next(TimePoint now, double chance) {
    if (attempts_ == 0) trying_since_ = now;
    const int attempt = attempts_++;
    if (patience_ == Duration::zero())
      return attempt == 0 ? std::optional(Duration::zero()) : std::nullopt;
    if (now - trying_since_ >= patience_) return std::nullopt;
    const Duration most = std::min(kLongest, kFirst * (int64_t{1} << std::min(attempt, 20)));
    return std::chrono::duration_cast<Duration>(most * (0.5 + 0.5 * chance));
  }

 private:
  const Duration patience_;
  TimePoint trying_since_{};
  int attempts_ = 0;  // since then
};

}  // namespace drover

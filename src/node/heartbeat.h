// Heartbeat: whether the other end of a connection still lives, and when to show it that we do.
//
// A closed connection is noticed at once, and TCP notices a host that has vanished; but nothing
// tells of a process that hangs, or is stopped, on a host that is well. So whoever has nothing to
// say for a beat says that it lives (kAlive), and whoever has been silent for kSilentBeats is taken
// for dead. Beats are counted, not timed: a process that was itself stopped for a minute wakes to
// one beat, and blames nobody for its own sleep.
#pragma once

#include <chrono>

#include "core/time.h"

namespace drover {

class Heartbeat {
 public:
  static constexpr Duration kBeat = std::chrono::seconds(2);
  static constexpr int kSilentBeats = 5;
  static constexpr Duration kSilence = kBeat * kSilentBeats;

  void heard() { heard_ = true; }
  void spoke() { spoke_ = true; }

  enum class Sign { kNone, kSpeak, kDead };
  // To be called once a beat.
  Sign on_beat() {
    silent_ = heard_ ? 0 : silent_ + 1;
    const bool silence = !spoke_;
    heard_ = spoke_ = false;
    if (silent_ >= kSilentBeats) return Sign::kDead;
    return silence ? Sign::kSpeak : Sign::kNone;
  }

 private:
  bool heard_ = false;  // since the last beat
  bool spoke_ = false;  // the same
  int silent_ = 0;      // beats without a word
};

}  // namespace drover

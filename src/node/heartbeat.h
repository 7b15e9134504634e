// Heartbeat: decides when a connection needs a keep-alive frame, and when its peer counts as dead.
//
// A closed connection is noticed at once, and TCP notices a host that has vanished. Neither notices
// a process that hangs or is stopped. So an end that has sent nothing for a beat sends kAlive, and
// a peer from which nothing came for kSilentBeats counts as dead. Beats are counted, not timed: a
// process that was itself stopped for a minute sees one beat when it continues, and does not take
// its peers for dead.
#pragma once

#include <chrono>

#include "core/time.h"

namespace drover {

class Heartbeat {
 public:
  static constexpr Duration kBeat = std::chrono::seconds(2);
  static constexpr int kSilentBeats = 5;
  static constexpr Duration kSilence = kBeat * kSilentBeats;

  void on_received() { received_ = true; }
  void on_sent() { sent_ = true; }

  enum class Action { kNone, kSendAlive, kPeerIsDead };
  // To be called once a beat.
  Action on_beat() {
    silent_ = received_ ? 0 : silent_ + 1;
    const bool send = !sent_;
    received_ = sent_ = false;
    if (silent_ >= kSilentBeats) return Action::kPeerIsDead;
    return send ? Action::kSendAlive : Action::kNone;
  }

 private:
  bool received_ = false;  // since the last beat
  bool sent_ = false;      // since the last beat
  int silent_ = 0;         // beats in a row in which nothing came
};

}  // namespace drover

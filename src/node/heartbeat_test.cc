#include "node/heartbeat.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(Heartbeat, SendsAliveWhenNothingElseWasSent) {
  Heartbeat heartbeat;
  heartbeat.on_received();
  EXPECT_EQ(heartbeat.on_beat(), Heartbeat::Action::kSendAlive);
  heartbeat.on_received();
  heartbeat.on_sent();
  EXPECT_EQ(heartbeat.on_beat(), Heartbeat::Action::kNone);
}

TEST(Heartbeat, APeerIsDeadAfterSoManySilentBeatsInARow) {
  Heartbeat heartbeat;
  for (int round = 0; round < 3; ++round) {
    for (int beat = 1; beat < Heartbeat::kSilentBeats; ++beat)
      EXPECT_NE(heartbeat.on_beat(), Heartbeat::Action::kPeerIsDead) << round << " " << beat;
    heartbeat.on_received();
    EXPECT_NE(heartbeat.on_beat(), Heartbeat::Action::kPeerIsDead);
  }
  for (int beat = 1; beat < Heartbeat::kSilentBeats; ++beat) heartbeat.on_beat();
  EXPECT_EQ(heartbeat.on_beat(), Heartbeat::Action::kPeerIsDead);
}

// Two ends that send nothing else keep each other alive, whatever the phase of their beats.
TEST(Heartbeat, TwoIdleEndsStayAlive) {
  Heartbeat a;
  Heartbeat b;
  for (int beat = 0; beat < 100; ++beat) {
    const auto from_a = a.on_beat();
    ASSERT_NE(from_a, Heartbeat::Action::kPeerIsDead);
    if (from_a == Heartbeat::Action::kSendAlive) {
      a.on_sent();
      b.on_received();
    }
    const auto from_b = b.on_beat();
    ASSERT_NE(from_b, Heartbeat::Action::kPeerIsDead);
    if (from_b == Heartbeat::Action::kSendAlive) {
      b.on_sent();
      a.on_received();
    }
  }
}

}  // namespace
}  // namespace drover

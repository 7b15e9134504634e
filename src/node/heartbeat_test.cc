#include "node/heartbeat.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(Heartbeat, SpeaksWhenNothingElseWasSaid) {
  Heartbeat heartbeat;
  heartbeat.heard();
  EXPECT_EQ(heartbeat.on_beat(), Heartbeat::Sign::kSpeak);
  heartbeat.heard();
  heartbeat.spoke();
  EXPECT_EQ(heartbeat.on_beat(), Heartbeat::Sign::kNone);
}

TEST(Heartbeat, TakesForDeadWhoIsSilentForSoManyBeatsInARow) {
  Heartbeat heartbeat;
  for (int round = 0; round < 3; ++round) {
    for (int beat = 1; beat < Heartbeat::kSilentBeats; ++beat)
      EXPECT_NE(heartbeat.on_beat(), Heartbeat::Sign::kDead) << round << " " << beat;
    heartbeat.heard();
    EXPECT_NE(heartbeat.on_beat(), Heartbeat::Sign::kDead);
  }
  for (int beat = 1; beat < Heartbeat::kSilentBeats; ++beat) heartbeat.on_beat();
  EXPECT_EQ(heartbeat.on_beat(), Heartbeat::Sign::kDead);
}

// Two ends that have nothing else to say keep each other alive, at whatever phase they beat.
TEST(Heartbeat, TwoIdleEndsLive) {
  Heartbeat a;
  Heartbeat b;
  for (int beat = 0; beat < 100; ++beat) {
    const auto from_a = a.on_beat();
    ASSERT_NE(from_a, Heartbeat::Sign::kDead);
    if (from_a == Heartbeat::Sign::kSpeak) {
      a.spoke();
      b.heard();
    }
    const auto from_b = b.on_beat();
    ASSERT_NE(from_b, Heartbeat::Sign::kDead);
    if (from_b == Heartbeat::Sign::kSpeak) {
      b.spoke();
      a.heard();
    }
  }
}

}  // namespace
}  // namespace drover

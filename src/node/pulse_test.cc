#include "node/pulse.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(Pulse, SpeaksWhenNothingElseWasSaid) {
  Pulse pulse;
  pulse.heard();
  EXPECT_EQ(pulse.on_beat(), Pulse::Sign::kSpeak);
  pulse.heard();
  pulse.spoke();
  EXPECT_EQ(pulse.on_beat(), Pulse::Sign::kNone);
}

TEST(Pulse, TakesForDeadWhoIsSilentForSoManyBeatsInARow) {
  Pulse pulse;
  for (int round = 0; round < 3; ++round) {
    for (int beat = 1; beat < Pulse::kSilentBeats; ++beat)
      EXPECT_NE(pulse.on_beat(), Pulse::Sign::kDead) << round << " " << beat;
    pulse.heard();
    EXPECT_NE(pulse.on_beat(), Pulse::Sign::kDead);
  }
  for (int beat = 1; beat < Pulse::kSilentBeats; ++beat) pulse.on_beat();
  EXPECT_EQ(pulse.on_beat(), Pulse::Sign::kDead);
}

// Two ends that have nothing else to say keep each other alive, at whatever phase they beat.
TEST(Pulse, TwoIdleEndsLive) {
  Pulse a;
  Pulse b;
  for (int beat = 0; beat < 100; ++beat) {
    const auto from_a = a.on_beat();
    ASSERT_NE(from_a, Pulse::Sign::kDead);
    if (from_a == Pulse::Sign::kSpeak) {
      a.spoke();
      b.heard();
    }
    const auto from_b = b.on_beat();
    ASSERT_NE(from_b, Pulse::Sign::kDead);
    if (from_b == Pulse::Sign::kSpeak) {
      b.spoke();
      a.heard();
    }
  }
}

}  // namespace
}  // namespace drover

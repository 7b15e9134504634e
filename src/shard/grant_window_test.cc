#include "shard/grant_window.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

constexpr size_t kMost = 1 << 20;

TEST(GrantWindow, StaysWhereNothingIsLost) {
  GrantWindow window(kMost);
  for (int i = 0; i < 1000; ++i) window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost);
}

TEST(GrantWindow, HalvesWhenLossesAreMany) {
  GrantWindow window(kMost);
  for (uint32_t i = 1; i < GrantWindow::kTooMany; ++i) window.on_block(true);
  EXPECT_EQ(window.bytes(), kMost);
  window.on_block(true);
  EXPECT_EQ(window.bytes(), kMost / 2);
  window.on_block(true);
  EXPECT_EQ(window.bytes(), kMost / 2);
}

// Packets overtake each other now and then on networks that lose nothing.
TEST(GrantWindow, DoesNotMindALossNowAndThen) {
  GrantWindow window(kMost);
  for (int i = 0; i < 10'000; ++i) window.on_block(i % 10 == 0);
  EXPECT_EQ(window.bytes(), kMost);
}

TEST(GrantWindow, NeverGoesBelowItsLeastNorAboveItsMost) {
  GrantWindow window(kMost);
  for (int i = 0; i < 1000; ++i) window.on_block(true);
  EXPECT_EQ(window.bytes(), GrantWindow::kLeastBytes);
  for (int i = 0; i < 10'000; ++i) window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost);
  GrantWindow small(1000);  // less than the least, because somebody says so
  for (int i = 0; i < 1000; ++i) small.on_block(true);
  EXPECT_EQ(small.bytes(), 1000U);
}

TEST(GrantWindow, GrowsAfterACalmWhile) {
  GrantWindow window(kMost);
  while (window.bytes() > kMost / 4) window.on_block(true);
  for (uint32_t i = 1; i < GrantWindow::kCalm * GrantWindow::kStretch; ++i) window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost / 4);
  window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost / 4 + GrantWindow::kGrowthBytes);
}

}  // namespace
}  // namespace drover

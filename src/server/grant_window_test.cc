#include "server/grant_window.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

constexpr size_t kBlock = 256 << 10;
constexpr size_t kMost = 1 << 20;

TEST(GrantWindow, StaysWhereNothingIsLost) {
  GrantWindow window(kMost);
  for (int i = 0; i < 1000; ++i) window.on_received(kBlock, false);
  EXPECT_EQ(window.bytes(), kMost);
}

// Losses come in bursts: those of one window are one piece of news.
TEST(GrantWindow, HalvesOnceForAWindowsWorthOfBytes) {
  GrantWindow window(kMost);
  for (int i = 0; i < 3; ++i) window.on_received(kBlock, true);
  EXPECT_EQ(window.bytes(), kMost);
  window.on_received(kBlock, true);
  EXPECT_EQ(window.bytes(), kMost / 2);
  window.on_received(kBlock, true);
  EXPECT_EQ(window.bytes(), kMost / 2);
}

TEST(GrantWindow, NeverGoesBelowItsLeastNorAboveItsMost) {
  GrantWindow window(kMost);
  for (int i = 0; i < 1000; ++i) window.on_received(kBlock, true);
  EXPECT_EQ(window.bytes(), GrantWindow::kLeastBytes);
  for (int i = 0; i < 10'000; ++i) window.on_received(kBlock, false);
  EXPECT_EQ(window.bytes(), kMost);
  GrantWindow small(1000);  // less than the least, because somebody says so
  for (int i = 0; i < 1000; ++i) small.on_received(kBlock, true);
  EXPECT_EQ(small.bytes(), 1000U);
}

TEST(GrantWindow, GrowsSlowlyAndOnlyWhenClean) {
  GrantWindow window(kMost);
  while (window.bytes() > kBlock) window.on_received(kBlock, true);
  for (size_t i = 1; i < GrantWindow::kCleanWindows; ++i) window.on_received(kBlock, false);
  EXPECT_EQ(window.bytes(), kBlock);
  window.on_received(kBlock, false);
  EXPECT_EQ(window.bytes(), kBlock + GrantWindow::kGrowthBytes);
}

}  // namespace
}  // namespace drover

#include "shard/grant_window.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

constexpr size_t kMost = 1 << 20;

TEST(GrantWindow, IsConstantWithoutLosses) {
  GrantWindow window(kMost);
  for (int i = 0; i < 1000; ++i) window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost);
}

TEST(GrantWindow, HalvesAfterManyLosses) {
  GrantWindow window(kMost);
  for (uint32_t i = 1; i < GrantWindow::kLossyMax; ++i) window.on_block(true);
  EXPECT_EQ(window.bytes(), kMost);
  window.on_block(true);
  EXPECT_EQ(window.bytes(), kMost / 2);
  window.on_block(true);
  EXPECT_EQ(window.bytes(), kMost / 2);
}

// Packets may be reordered on networks without losses.
TEST(GrantWindow, IgnoresRareLosses) {
  GrantWindow window(kMost);
  for (int i = 0; i < 10'000; ++i) window.on_block(i % 10 == 0);
  EXPECT_EQ(window.bytes(), kMost);
}

TEST(GrantWindow, StaysWithinItsBounds) {
  GrantWindow window(kMost);
  for (int i = 0; i < 1000; ++i) window.on_block(true);
  EXPECT_EQ(window.bytes(), GrantWindow::kLeastBytes);
  for (int i = 0; i < 10'000; ++i) window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost);
  GrantWindow small(1000);  // the maximum may be below kLeastBytes
  for (int i = 0; i < 1000; ++i) small.on_block(true);
  EXPECT_EQ(small.bytes(), 1000U);
}

TEST(GrantWindow, GrowsAfterIntervalsWithoutLosses) {
  GrantWindow window(kMost);
  while (window.bytes() > kMost / 4) window.on_block(true);
  for (uint32_t i = 1; i < GrantWindow::kCleanIntervals * GrantWindow::kInterval; ++i)
    window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost / 4);
  window.on_block(false);
  EXPECT_EQ(window.bytes(), kMost / 4 + GrantWindow::kGrowthBytes);
}

}  // namespace
}  // namespace drover

#include "forecast/learned/rivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace drover {
namespace {

TEST(Rivals, TheBetterOneIsBelievedMore) {
  Rivals rivals(3, 20.0);
  for (int i = 0; i < 10; ++i) {
    rivals.add(0, 1.0);
    rivals.add(1, 1.04);
  }
  const auto weights = rivals.weights(25.0, 0.05);
  EXPECT_NEAR(weights[0], 1.0 / (1.0 + std::exp(-1.0)), 1e-9);
  EXPECT_NEAR(weights[0] + weights[1], 1.0, 1e-12);
  EXPECT_EQ(weights[2], 0.0) << "it is not in the race";
}

TEST(Rivals, WhoeverIsFarBehindIsLeftOut) {
  Rivals rivals(2, 20.0);
  rivals.add(0, 1.0);
  rivals.add(1, 1.5);
  EXPECT_EQ(rivals.weights(25.0, 0.05)[1], 0.0);
  EXPECT_EQ(rivals.weights(25.0, 0.05)[0], 1.0);
}

TEST(Rivals, ThePastIsForgotten) {
  Rivals rivals(2, 5.0);
  for (int i = 0; i < 100; ++i) {
    rivals.add(0, 1.0);
    rivals.add(1, 3.0);
  }
  for (int i = 0; i < 25; ++i) {
    rivals.add(0, 3.0);
    rivals.add(1, 1.0);
  }
  EXPECT_LT(rivals.mean(1), 1.1);
  EXPECT_GT(rivals.weights(25.0, 0.05)[1], 0.99);
}

TEST(Rivals, ANewcomerIsTakenForSomebodyElseUntilItHasShownItself) {
  Rivals rivals(2, 5.0);
  EXPECT_FALSE(rivals.racing(1));
  for (int i = 0; i < 20; ++i) rivals.add(0, 2.0);
  rivals.enter(1, 0, 1.1);
  EXPECT_NEAR(rivals.mean(1), 2.2, 1e-9);
  EXPECT_EQ(rivals.scored(1), 0U);
  for (int i = 0; i < 40; ++i) rivals.add(1, 1.0);
  EXPECT_NEAR(rivals.mean(1), 1.0, 0.01);
}

TEST(Rivals, WhoIsNeverWrongIsBelieved) {
  Rivals rivals(2, 5.0);
  rivals.add(0, 0.0);
  rivals.add(1, 0.5);
  EXPECT_EQ(rivals.weights(25.0, 0.05)[0], 1.0);
  EXPECT_EQ(Rivals(2, 5.0).weights(25.0, 0.05)[0], 0.0) << "nobody is there";
}

TEST(JudgedPlace, EverybodyEquallyOftenAndNobodyTwiceInAStep) {
  constexpr size_t kCount = 32;
  for (const size_t size : {32U, 33U, 40U, 63U, 64U, 95U, 2175U}) {
    std::vector<size_t> times(size);
    for (Step step = 7; step < 7 + size; ++step) {
      size_t before = 0;
      for (size_t j = 0; j < kCount; ++j) {
        const size_t place = judged_place(step, j, kCount, size);
        ASSERT_LT(place, size);
        ASSERT_TRUE(j == 0 || place > before);
        before = place;
        ++times[place];
      }
    }
    EXPECT_EQ(times, std::vector<size_t>(size, kCount)) << size;
  }
}

}  // namespace
}  // namespace drover

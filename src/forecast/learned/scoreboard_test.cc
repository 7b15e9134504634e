#include "forecast/learned/scoreboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace drover {
namespace {

TEST(Scoreboard, TheBetterEntryHasMoreWeight) {
  Scoreboard scores(3, 20.0);
  for (int i = 0; i < 10; ++i) {
    scores.add(0, 1.0);
    scores.add(1, 1.04);
  }
  const auto weights = scores.weights(25.0, 0.05);
  EXPECT_NEAR(weights[0], 1.0 / (1.0 + std::exp(-1.0)), 1e-9);
  EXPECT_NEAR(weights[0] + weights[1], 1.0, 1e-12);
  EXPECT_EQ(weights[2], 0.0) << "it has no score";
}

TEST(Scoreboard, AMuchWorseEntryHasNoWeight) {
  Scoreboard scores(2, 20.0);
  scores.add(0, 1.0);
  scores.add(1, 1.5);
  EXPECT_EQ(scores.weights(25.0, 0.05)[1], 0.0);
  EXPECT_EQ(scores.weights(25.0, 0.05)[0], 1.0);
}

TEST(Scoreboard, OldScoresDecay) {
  Scoreboard scores(2, 5.0);
  for (int i = 0; i < 100; ++i) {
    scores.add(0, 1.0);
    scores.add(1, 3.0);
  }
  for (int i = 0; i < 25; ++i) {
    scores.add(0, 3.0);
    scores.add(1, 1.0);
  }
  EXPECT_LT(scores.mean(1), 1.1);
  EXPECT_GT(scores.weights(25.0, 0.05)[1], 0.99);
}

TEST(Scoreboard, ANewEntryHasAnInitialScore) {
  Scoreboard scores(2, 5.0);
  EXPECT_FALSE(scores.has_score(1));
  for (int i = 0; i < 20; ++i) scores.add(0, 2.0);
  scores.enter(1, 0, 1.1);
  EXPECT_NEAR(scores.mean(1), 2.2, 1e-9);
  EXPECT_EQ(scores.scored(1), 0U);
  for (int i = 0; i < 40; ++i) scores.add(1, 1.0);
  EXPECT_NEAR(scores.mean(1), 1.0, 0.01);
}

TEST(Scoreboard, AScoreOfZeroIsValid) {
  Scoreboard scores(2, 5.0);
  scores.add(0, 0.0);
  scores.add(1, 0.5);
  EXPECT_EQ(scores.weights(25.0, 0.05)[0], 1.0);
  EXPECT_EQ(Scoreboard(2, 5.0).weights(25.0, 0.05)[0], 0.0) << "none has a score";
}

TEST(JudgedPlace, SelectsWorkersEquallyOften) {
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

#include "forecast/learned/history.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

PastTime arrived(float log_time) { return {log_time, log_time, Known::kArrived}; }
PastTime longer(float bound, float imputed) { return {imputed, bound, Known::kLonger}; }

TEST(History, KeepsStepsInOrder) {
  History history;
  history.add(3, std::vector{arrived(1.0F), longer(2.0F, 2.5F)});
  history.add(5, std::vector{arrived(4.0F), PastTime{}});
  ASSERT_EQ(history.steps(), 2U);
  EXPECT_EQ(history.step(1), 5U);
  EXPECT_FLOAT_EQ(history.row(0)[1].log_time, 2.5F);
  EXPECT_EQ(history.row(1)[1].known, Known::kNothing);
  const History part = history.part(1, 2);
  ASSERT_EQ(part.steps(), 1U);
  EXPECT_FLOAT_EQ(part.row(0)[0].log_time, 4.0F);
}

TEST(History, NewWorkersTookNoPartInEarlierSteps) {
  History history;
  history.add(0, std::vector{arrived(1.0F)});
  history.add(1, std::vector{arrived(2.0F), arrived(3.0F)});
  EXPECT_EQ(history.workers(), 2U);
  EXPECT_FLOAT_EQ(history.row(0)[0].log_time, 1.0F);
  EXPECT_EQ(history.row(0)[1].known, Known::kNothing);
  EXPECT_FLOAT_EQ(history.row(1)[1].log_time, 3.0F);
}

TEST(History, ABoundIsCorrectedOnceAndNeverShortened) {
  History history;
  history.add(7, std::vector{arrived(1.0F), longer(2.0F, 2.5F)});
  EXPECT_FALSE(history.correct(7, 0, 9.0F)) << "already known";
  EXPECT_FALSE(history.correct(6, 1, 9.0F)) << "no such step";
  EXPECT_FALSE(history.correct(7, 2, 9.0F)) << "no such worker";
  EXPECT_TRUE(history.correct(7, 1, 1.5F));
  EXPECT_FLOAT_EQ(history.row(0)[1].log_time, 2.0F) << "clocks may differ slightly";
  EXPECT_EQ(history.row(0)[1].known, Known::kArrived);
}

TEST(History, ForgetsTheOldestWhenFull) {
  History history(20);
  for (Step step = 0; step < 100; ++step) {
    history.add(step, std::vector{arrived(1.0F), arrived(static_cast<float>(step))});
    EXPECT_LE(history.steps() * 2, 26U);
    EXPECT_FLOAT_EQ(history.row(history.steps() - 1)[1].log_time, static_cast<float>(step));
    EXPECT_EQ(history.step(history.steps() - 1), step);
  }
  EXPECT_GE(history.steps(), 10U);
}

}  // namespace
}  // namespace drover

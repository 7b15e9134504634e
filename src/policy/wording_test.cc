#include "policy/wording.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

TEST(NumberText, HasThreeDigitsAndCommas) {
  EXPECT_EQ(number_text(12.34), "12.3");
  EXPECT_EQ(number_text(0.0), "0");
  EXPECT_EQ(number_text(-0.0512), "-0.0512");
  EXPECT_EQ(number_text(999.7), "1,000");
  EXPECT_EQ(number_text(8109.6), "8,110");
  EXPECT_EQ(number_text(-1234567.0), "-1,234,567");
}

TEST(TimeText, ChoosesTheUnitBySize) {
  EXPECT_EQ(time_text(6.783, TimeUnit::kSeconds), "6.78 s");
  EXPECT_EQ(time_text(2500.0, TimeUnit::kSeconds), "2,500 s");
  EXPECT_EQ(time_text(0.05062, TimeUnit::kSeconds), "50.6 ms");
  EXPECT_EQ(time_text(0.9996, TimeUnit::kSeconds), "1 s");
  EXPECT_EQ(time_text(12e-6, TimeUnit::kSeconds), "12 us");
  EXPECT_EQ(time_text(0.0, TimeUnit::kSeconds), "0 s");
}

TEST(TimeText, DoesNotInventAUnit) {
  EXPECT_EQ(time_text(6783.0, TimeUnit::kUnknown), "6,783 time units");
  EXPECT_EQ(time_text(0.05, TimeUnit::kUnknown), "0.05 time units");
}

TEST(RateText, HasAUnit) {
  EXPECT_EQ(rate_text(6000.0, TimeUnit::kSeconds), "6,000 gradients/s");
  EXPECT_EQ(rate_text(0.006, TimeUnit::kUnknown), "0.006 gradients per time unit");
}

TEST(WorkerCountText, SaysHowManyOfHowMany) {
  EXPECT_EQ(worker_count_text(94, 98), "94 of 98");
  EXPECT_EQ(worker_count_text(98, 98), "all 98 workers");
  EXPECT_EQ(worker_count_text(1, 1), "the only worker");
}

TEST(TimeLimitText, IsEmptyWithoutALimit) {
  EXPECT_EQ(time_limit_text(kNoTimeLimit, TimeUnit::kSeconds), "");
  EXPECT_EQ(time_limit_text(2.5, TimeUnit::kSeconds), " or 2.5 s");
}

}  // namespace
}  // namespace drover

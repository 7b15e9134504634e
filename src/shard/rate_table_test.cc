// The learning rate of a step: that of the schedule, or the one set by a worker.
#include "shard/rate_table.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

RateTable table(RateRule rule = RateRule::kNone) { return {{.base = 1.0, .rule = rule}, 10}; }

TEST(RateTable, UsesTheScheduleUntilAWorkerSetsARate) {
  RateTable rates = table();
  ASSERT_TRUE(rates.on_rate(0, {.from = 2, .rate = 0.5}, 0));
  EXPECT_EQ(rates.rate_of(1, 10), 1.0);
  EXPECT_EQ(rates.rate_of(2, 10), 0.5);
  EXPECT_EQ(rates.rate_of(7, 10), 0.5) << "until another rate is set";
}

TEST(RateTable, IfWorkersDisagreeTheLowestNumberWins) {
  RateTable rates = table();
  for (const WorkerId worker : {2u, 1u, 3u})
    ASSERT_TRUE(rates.on_rate(worker, {.from = 0, .rate = 0.1 * worker}, 0));
  EXPECT_EQ(rates.rate_of(0, 10), 0.1);
}

TEST(RateTable, AppliesTheRuleToTheSamplesOfAnUpdate) {
  EXPECT_EQ(table(RateRule::kLinear).rate_of(0, 5), 0.5);
  RateTable adascale = table(RateRule::kAdaScale);
  EXPECT_EQ(adascale.rate_of(0, 5), 1.0) << "the noise scale is unknown";
  adascale.set_noise_scale(10.0);
  EXPECT_DOUBLE_EQ(adascale.rate_of(0, 5), 0.5 * 20.0 / 15.0);
}

TEST(RateTable, ForgetsRatesThatAreSuperseded) {
  RateTable rates = table();
  for (Step step = 0; step < 100; ++step) {
    ASSERT_TRUE(rates.on_rate(0, {.from = step, .rate = static_cast<double>(step)}, step));
    EXPECT_LE(rates.pending(), 2u);
  }
  EXPECT_EQ(rates.rate_of(99, 10), 99.0);
}

TEST(RateTable, RefusesRatesForStepsFarAhead) {
  RateTable rates = table();
  EXPECT_TRUE(rates.on_rate(0, {.from = 5 + 1'023, .rate = 1.0}, 5));
  EXPECT_FALSE(rates.on_rate(0, {.from = 5 + 1'024, .rate = 1.0}, 5));
}

}  // namespace
}  // namespace drover

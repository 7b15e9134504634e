#include "system/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace drover {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Spread, IsTheMedianWithTheEnds) {
  const Spread odd = spread_of({3.0, 1.0, 2.0});
  EXPECT_EQ(odd.median, 2.0);
  EXPECT_EQ(odd.least, 1.0);
  EXPECT_EQ(odd.most, 3.0);
  EXPECT_EQ(spread_of({4.0, 1.0}).median, 2.5);
}

// If the machine is twice as slow in one round, it is for both, and the ratio does not change.
TEST(Spread, OfRatiosIsRoundByRound) {
  const Spread ratio = spread_of_ratios({9.0, 4.5, 8.0}, {10.0, 5.0, 10.0});
  EXPECT_DOUBLE_EQ(ratio.median, 0.9);
  EXPECT_DOUBLE_EQ(ratio.least, 0.8);
  EXPECT_DOUBLE_EQ(ratio.most, 0.9);
}

TEST(TakeTurns, GoesBackwardsEverySecondRound) {
  std::vector<int> order;
  const std::array<std::function<void()>, 2> both = {[&] { order.push_back(1); },
                                                     [&] { order.push_back(2); }};
  for (uint32_t round = 0; round < 3; ++round) take_turns(round, both);
  EXPECT_THAT(order, ElementsAre(1, 2, 2, 1, 1, 2));
}

TEST(BenchReport, HasTheFloorAndTheRatio) {
  BenchReport report{.title = "A push",
                     .bench = "server",
                     .settings = {{"workers", 8}},
                     .figures = {},
                     .notes = {"That was it."}};
  report.figures.push_back({.what = "push",
                            .unit = "gb_per_s",
                            .values = {3.0, 4.0, 5.0},
                            .beside = {{"floor", {6.0, 8.0, 5.0}}},
                            .further = {{"retransmits", 7}}});
  const auto line = to_json(report).at("figures").at(0);
  EXPECT_EQ(line.at("gb_per_s"), 4.0);
  EXPECT_EQ(line.at("floor_gb_per_s"), 6.0);
  EXPECT_EQ(line.at("ratio_to_floor"), 0.5);
  EXPECT_EQ(line.at("ratio_to_floor_max"), 1.0);
  EXPECT_EQ(line.at("retransmits"), 7);
  EXPECT_EQ(to_json(report).at("settings").at("workers"), 8);
  const std::string table = to_table(report);
  EXPECT_THAT(table, HasSubstr("4.00 (3.00-5.00)"));
  EXPECT_THAT(table, HasSubstr("0.50 (0.50-1.00)"));
  EXPECT_THAT(table, HasSubstr("That was it."));
}

}  // namespace
}  // namespace drover

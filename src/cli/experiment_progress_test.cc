#include "cli/experiment_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

TEST(GridProgress, OmitsTheLeastImportantPartsFirst) {
  const GridState state{.cells = 20,
                        .done = 5,
                        .failed = 1,
                        .running = {"calm / sync / seed 1", "calm / sync / seed 2"},
                        .seconds_left = 65.0};
  EXPECT_EQ(grid_line(state, 200),
            "[=====               ]  5/20 cells  1 failed  1:05 left  running calm / sync / seed 1 "
            "and 1 more");
  EXPECT_EQ(grid_line(state, 40), "5/20 cells  1 failed  1:05 left");
  EXPECT_EQ(grid_line(state, 15), "5/20 cells");
  EXPECT_EQ(grid_line({.cells = 2}, 80), "[                    ]  0/2 cells");
}

TEST(GridProgress, TimeLeftFollowsFromCellsOfTheSamePlace) {
  std::vector<Cell> cells(6);
  for (size_t i = 3; i < 6; ++i) {
    cells[i].place = 1;
    cells[i].real = true;
  }
  TimeEstimate estimate(cells, 2);
  EXPECT_LT(estimate.left({0, 1}, {}), 0.0) << "nothing is known yet";
  estimate.on_ended({.cell = 0, .seconds = 10.0});
  EXPECT_DOUBLE_EQ(estimate.left({1, 2}, {}), 10.0) << "two at once";
  EXPECT_DOUBLE_EQ(estimate.left({1, 2}, {{1, 4.0}}), 8.0);
  EXPECT_DOUBLE_EQ(estimate.left({1, 2}, {{1, 40.0}}), 5.0);
  EXPECT_DOUBLE_EQ(estimate.left({3}, {}), 10.0) << "from all cells: none of its place has ended";
  estimate.on_ended({.cell = 3, .seconds = 100.0});
  estimate.on_ended({.cell = 4, .ending = CellEnding::kFailed, .seconds = 1.0});
  EXPECT_DOUBLE_EQ(estimate.left({1, 2, 5}, {}), 110.0) << "real ones run alone";
}

}  // namespace
}  // namespace drover

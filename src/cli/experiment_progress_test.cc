#include "cli/experiment_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace drover {
namespace {

TEST(GridProgress, LeavesOutWhatMattersLeast) {
  const GridState state{.cells = 20,
                        .done = 5,
                        .failed = 1,
                        .running = {"calm / sync / seed 1", "calm / sync / seed 2"},
                        .seconds_left = 65.0};
  EXPECT_EQ(grid_line(state, 200),
            "[

}  // namespace
}  // namespace drover

#include "sim/hunt.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

std::string told(uint64_t seed, const HuntCase& hunt, const HuntResult& found) {
  std::string text = "seed " + std::to_string(seed) + ": " + found.verdict;
  for (const std::string& line : hunt.story) text += "\n  " + line;
  return text + "\n  drover simulate --hunt 1 --seed " + std::to_string(seed);
}

// Four parts, so that two cores share them.
class Hunt : public ::testing::TestWithParam<uint64_t> {};

TEST_P(Hunt, FindsNothingWrongInHundredsOfRandomFaultSchedules) {
  uint64_t completed = 0;
  for (uint64_t seed = GetParam(); seed < GetParam() + 600; ++seed) {
    const HuntCase hunt = make_hunt_case(seed);
    const HuntResult found = run_hunt_case(hunt);
    ASSERT_EQ(found.verdict, "") << told(seed, hunt, found);
    completed += found.end.outcome == RunOutcome::kCompleted;
  }
  EXPECT_GT(completed, 450u) << "hunts in which everybody dies show little";
}

INSTANTIATE_TEST_SUITE_P(Quarters, Hunt, ::testing::Values(1, 10'001, 20'001, 30'001));

}  // namespace
}  // namespace drover

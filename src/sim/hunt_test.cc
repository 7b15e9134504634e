#include "sim/hunt.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

std::string report(uint64_t seed, const HuntCase& hunt, const HuntResult& found) {
  std::string text = "seed " + std::to_string(seed) + ": " + found.verdict;
  for (const std::string& line : hunt.description) text += "\n  " + line;
  return text + "\n  drover simulate --hunt 1 --seed " + std::to_string(seed);
}

// Four parts, which can run in parallel.
class Hunt : public ::testing::TestWithParam<uint64_t> {};

TEST_P(Hunt, FindsNoViolationInHundredsOfRandomFaultSchedules) {
  uint64_t completed = 0;
  for (uint64_t seed = GetParam(); seed < GetParam() + 600; ++seed) {
    const HuntCase hunt = make_hunt_case(seed);
    const HuntResult found = run_hunt_case(hunt);
    ASSERT_EQ(found.verdict, "") << report(seed, hunt, found);
    completed += found.end.outcome == RunOutcome::kCompleted;
  }
  EXPECT_GT(completed, 450u) << "runs in which all workers die test little";
}

INSTANTIATE_TEST_SUITE_P(Quarters, Hunt, ::testing::Values(1, 10'001, 20'001, 30'001));

}  // namespace
}  // namespace drover

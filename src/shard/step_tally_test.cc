// The report of a closed step to the coordinator.
#include "shard/step_tally.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

// Three workers, two blocks; step 0 opens at 10 ms.
class StepTallyTest : public ::testing::Test {
 protected:
  StepTallyTest() { tally_.open(0, 10ms); }
  void push_all(WorkerId worker, Step step, TimePoint at) {
    for (int block = 0; block < 2; ++block) tally_.on_block(worker, step, at);
  }
  StepClosed close(TimePoint now) {
    StepClosed closed = tally_.summary(now);
    tally_.add_arrivals(members_, closed);
    tally_.open_next(now);
    return closed;
  }
  Membership members_{3};
  StepTally tally_{3, 2};
};

using Arrivals = std::vector<StepClosed::Arrival>;

TEST_F(StepTallyTest, AGradientHasArrivedWithItsLastBlock) {
  EXPECT_FALSE(tally_.on_block(1, 0, 12ms));
  EXPECT_TRUE(tally_.on_block(1, 0, 15ms));
  tally_.on_block(2, 0, 16ms);
  const StepClosed closed = close(20ms);
  EXPECT_EQ(closed.step, 0u);
  EXPECT_EQ(closed.elapsed, 10ms);
  EXPECT_EQ(closed.arrivals, (Arrivals{{1, 5ms, 0}}));
  EXPECT_EQ(tally_.step(), 1u);
  EXPECT_EQ(tally_.opened(), TimePoint(20ms));
}

TEST_F(StepTallyTest, AStragglerIsReportedWhenItIsComplete) {
  tally_.on_block(2, 0, 16ms);
  EXPECT_TRUE(close(20ms).late.empty());
  tally_.on_late(2, 0, 35ms);
  EXPECT_EQ(close(40ms).late, (Arrivals{{2, 25ms, 0}})) << "since the opening of its own step";
  tally_.on_late(2, 0, 45ms);
  EXPECT_TRUE(close(50ms).late.empty()) << "once";
}

TEST_F(StepTallyTest, AGradientThatWasLateForOneBlockIsReportedTwice) {
  tally_.on_block(0, 0, 12ms);
  tally_.on_late(0, 0, 14ms);
  EXPECT_EQ(close(20ms).late, (Arrivals{{0, 4ms, 0}})) << "its true run-time, not that of the step";
  EXPECT_EQ(close(30ms).late, (Arrivals{{0, 4ms, 0}}));
  EXPECT_TRUE(close(40ms).late.empty());
}

TEST_F(StepTallyTest, AStragglerThatIsLostIsForgotten) {
  tally_.on_block(2, 0, 16ms);
  close(20ms);
  tally_.forget(2);
  tally_.on_late(2, 0, 35ms);
  EXPECT_TRUE(close(40ms).late.empty());
}

TEST_F(StepTallyTest, ReportsTheFewestSamplesAndTheGradientsOfEachBlock) {
  tally_.on_block_closed(0, 40, 3, {.signal = 1.0, .noise = 2.0});
  tally_.on_block_closed(0, 24, 2, {.signal = 0.5, .noise = 4.0});
  const StepClosed closed = close(20ms);
  EXPECT_EQ(closed.samples, 24u);
  EXPECT_EQ(closed.gradients, 0u);
  EXPECT_EQ(closed.signal, 1.5);
  EXPECT_EQ(closed.noise, 6.0);
  EXPECT_EQ(closed.block_counts, (std::vector<BlockCount>{{2, 1}, {3, 1}}));
}

TEST_F(StepTallyTest, ReportsTheFewestGradientsOfARound) {
  tally_.on_round_closed(0, 40, 3);
  tally_.on_round_closed(0, 50, 2);
  const StepClosed closed = tally_.summary(20ms);
  EXPECT_EQ(closed.samples, 40u);
  EXPECT_EQ(closed.gradients, 2u);
  EXPECT_TRUE(closed.block_counts.empty());
}

TEST_F(StepTallyTest, ReportsArrivalsInTheOpenStep) {
  push_all(0, 0, 11ms);
  EXPECT_FALSE(tally_.take_unreported(0));
  EXPECT_FALSE(tally_.take_unreported(2));
  push_all(2, 0, 13ms);
  push_all(1, 1, 14ms);  // ahead of the open step
  const auto arrivals = tally_.take_unreported(2);
  ASSERT_TRUE(arrivals);
  EXPECT_EQ(arrivals->step, 0u);
  EXPECT_EQ(arrivals->arrivals, (Arrivals{{0, 1ms, 0}, {2, 3ms, 0}}));
  EXPECT_FALSE(tally_.take_unreported(1)) << "each is reported once";
}

TEST_F(StepTallyTest, ReportsTheWorstOfEachWorkersOutliers) {
  tally_.on_outlier(1, 0, 7, 3.0, true);
  tally_.on_outlier(1, 0, 8, 9.0, true);
  tally_.on_outlier(2, 0, 7, 5.0, true);
  tally_.on_outlier(2, 0, 8, 4.0, false);
  const std::vector<StepClosed::Outlier> expected = {
      {.worker = 1, .block = 8, .blocks = 2, .ratio = 9.0, .used = true},
      {.worker = 2, .block = 7, .blocks = 2, .ratio = 5.0, .used = false}};
  EXPECT_EQ(close(20ms).outliers, expected);
}

TEST_F(StepTallyTest, ReportsRefusedBlocksAndTheWaitForADecision) {
  tally_.on_refused(1, 0, 4);
  tally_.on_undecided(0, 3ms);
  const StepClosed closed = close(20ms);
  EXPECT_EQ(closed.refused, (std::vector<StepClosed::Refused>{{1, 4}}));
  EXPECT_EQ(closed.undecided, 3ms);
  EXPECT_EQ(closed.closing, 3ms);
  EXPECT_EQ(close(30ms).undecided, 0ms);
}

TEST_F(StepTallyTest, AStepAheadIsOpenedOnce) {
  tally_.open(1, 15ms);
  close(20ms);
  EXPECT_EQ(tally_.opened(), TimePoint(15ms));
  EXPECT_EQ(tally_.since_opening(1, 18ms), 3ms);
  EXPECT_EQ(tally_.since_opening(9, 18ms), 0ms);
}

TEST_F(StepTallyTest, BoundsItsMemory) {
  for (Step step = 0; step < 1'000; ++step) {
    tally_.on_block(static_cast<WorkerId>(step % 3), step, 20ms);
    tally_.on_dropped(static_cast<WorkerId>((step + 1) % 3), step);
    close(20ms);
    ASSERT_LE(tally_.pending(), 64u * 4);
  }
}

}  // namespace
}  // namespace drover

// A worker counts as arrived when all shards have reported it, and at its largest run-time.
#include "coordinator/live_arrivals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace drover {
namespace {

using namespace std::chrono_literals;

class LiveArrivalsTest : public ::testing::Test {
 protected:
  LiveArrivalsTest() { arrivals_.open(std::vector<WorkerId>{1, 3, 7}, 2); }
  void report(ShardId shard, WorkerId worker, Duration run_time, Duration lead = {}) {
    arrivals_.on_arrived(shard, {.step = 0, .arrivals = {{worker, run_time, 0}}}, lead);
  }
  LiveArrivals arrivals_;
};

TEST_F(LiveArrivalsTest, AGradientHasArrivedWhenAllShardsReportIt) {
  report(0, 3, 20ms);
  EXPECT_EQ(arrivals_.arrived(), 0u);
  EXPECT_TRUE(std::isinf(arrivals_.times()[1]));
  report(1, 3, 30ms);
  EXPECT_EQ(arrivals_.arrived(), 1u);
  EXPECT_DOUBLE_EQ(arrivals_.times()[1], 0.03) << "the later of the two";
  EXPECT_TRUE(std::isinf(arrivals_.times()[0]));
}

TEST_F(LiveArrivalsTest, SubtractsTheLeadOfAShard) {
  report(0, 1, 30ms, 12ms);
  report(1, 1, 10ms);
  EXPECT_DOUBLE_EQ(arrivals_.times()[0], 0.018);
}

TEST_F(LiveArrivalsTest, IgnoresRepeatedReportsAndUnexpectedWorkers) {
  report(0, 7, 20ms);
  report(0, 7, 25ms);
  report(0, 2, 20ms);
  report(1, 2, 20ms);
  report(1, 100, 20ms);
  EXPECT_EQ(arrivals_.arrived(), 0u);
}

TEST_F(LiveArrivalsTest, NoWorkerHasArrivedWhenAStepOpens) {
  report(0, 7, 20ms);
  arrivals_.open(std::vector<WorkerId>{7}, 2);
  report(1, 7, 20ms);
  EXPECT_EQ(arrivals_.arrived(), 0u);
  ASSERT_EQ(arrivals_.times().size(), 1u);
}

}  // namespace
}  // namespace drover

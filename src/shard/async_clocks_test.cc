// Clocks of workers in asynchronous runs, and the bound on staleness.
#include "shard/async_clocks.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(AsyncClocks, AGradientIsCompleteWithItsLastBlock) {
  AsyncClocks clocks(2, 2, {});
  clocks.on_served(1, 10ns);
  EXPECT_FALSE(clocks.on_block(1, 0, true, 20ns));
  EXPECT_TRUE(clocks.on_block(1, 0, true, 35ns));
  EXPECT_EQ(clocks.take_arrivals(7), (std::vector<StepClosed::Arrival>{{1, 25ns, 7}}));
  EXPECT_TRUE(clocks.take_arrivals(8).empty()) << "each is reported once";
}

TEST(AsyncClocks, AGradientWithUnusedBlocksHasNotArrived) {
  AsyncClocks clocks(1, 2, {});
  clocks.on_block(0, 0, true, 1ns);
  EXPECT_TRUE(clocks.on_block(0, 0, false, 2ns));
  EXPECT_TRUE(clocks.take_arrivals(0).empty());
}

TEST(AsyncClocks, TheSlowestMemberHoldsTheOthersBack) {
  AsyncClocks clocks(3, 1, 1);
  Membership members(3);
  for (const WorkerId worker : {0u, 1u, 2u}) clocks.set_if_unknown(worker, 0);
  EXPECT_TRUE(clocks.may_begin(1));
  EXPECT_FALSE(clocks.may_begin(2));
  clocks.on_block(0, 0, true, 1ns);
  clocks.on_block(1, 0, true, 1ns);
  EXPECT_FALSE(clocks.find_slowest(members)) << "worker 2 has not advanced";
  members.remove(2);
  EXPECT_TRUE(clocks.find_slowest(members));
  EXPECT_TRUE(clocks.may_begin(2));
  EXPECT_FALSE(clocks.may_begin(3));
}

TEST(AsyncClocks, ALaterWorkerStartsAtTheGivenClock) {
  AsyncClocks clocks(2, 1, 0);
  Membership members(2);
  clocks.set_if_unknown(0, 0);
  for (Step step = 0; step < 5; ++step) clocks.on_block(0, step, true, 1ns);
  clocks.on_joined(1);
  clocks.set_if_unknown(1, 4);
  clocks.set_if_unknown(1, 0);
  clocks.find_slowest(members);
  EXPECT_TRUE(clocks.may_begin(4)) << "it does not hold up the other worker";
  EXPECT_FALSE(clocks.may_begin(5));
}

}  // namespace
}  // namespace drover

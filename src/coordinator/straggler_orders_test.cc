// Stragglers are told to stop unless they are to finish, nobody who finishes is disturbed, and what
// stopping cost is measured.
#include "coordinator/straggler_orders.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "coordinator/step_ledger.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

// A step in which these were left behind. Returns who is told to stop.
std::vector<WorkerId> close(StragglerOrders& orders, Step step,
                            const std::vector<WorkerId>& stragglers, TimePoint now = {}) {
  std::vector<WorkerId> told;
  orders.on_closed(step, stragglers);
  for (const WorkerId worker : stragglers) {
    if (orders.stop(step, worker, now)) told.push_back(worker);
  }
  return told;
}

TEST(StragglerOrders, TellEveryStragglerToStop) {
  StragglerOrders orders(StragglerRule::kStop, 0.0, 1);
  EXPECT_EQ(close(orders, 0, {1, 3}), (std::vector<WorkerId>{1, 3}));
  EXPECT_EQ(close(orders, 1, {3}), std::vector<WorkerId>{3});
  EXPECT_FALSE(orders.is_busy(3));
}

TEST(StragglerOrders, OrLetAllFinish) {
  StragglerOrders orders(StragglerRule::kFinish, 0.0, 1);
  EXPECT_TRUE(close(orders, 0, {1, 3}).empty());
  EXPECT_TRUE(orders.is_busy(1));
  EXPECT_TRUE(close(orders, 1, {1, 3}).empty());
  orders.on_late(0, 1);
  EXPECT_FALSE(orders.is_busy(1));
  EXPECT_TRUE(orders.is_busy(3));
  orders.on_lost(3);
  EXPECT_FALSE(orders.is_busy(3));
}

TEST(StragglerOrders, WhoFinishesIsNotToldToStopForALaterStep) {
  StragglerOrders orders(StragglerRule::kStop, 1.0, 1);
  EXPECT_TRUE(close(orders, 4, {0}).empty());
  for (Step step = 5; step < 9; ++step) {
    EXPECT_TRUE(close(orders, step, {0}).empty());
    EXPECT_TRUE(orders.is_busy(0));
  }
  orders.on_late(3, 0);
  EXPECT_TRUE(orders.is_busy(0)) << "that is the end of something earlier";
  orders.on_late(4, 0);
  EXPECT_FALSE(orders.is_busy(0));
}

TEST(StragglerOrders, WhoIsSeenInALaterStepIsNotBusyAnyMore) {
  StragglerOrders orders(StragglerRule::kFinish, 0.0, 1);
  close(orders, 4, {0, 1});
  close(orders, 5, {1});
  EXPECT_FALSE(orders.is_busy(0));
  EXPECT_TRUE(orders.is_busy(1));
  // It went on without ever having been in step 4, and is late for another.
  orders.on_late(6, 1);
  EXPECT_FALSE(orders.is_busy(1));
}

TEST(StragglerOrders, ForgetsWhoNeverComes) {
  StragglerOrders orders(StragglerRule::kFinish, 0.0, 1);
  close(orders, 0, {2});
  Step step = 1;
  for (; step <= StepLedger::kStepsRemembered; ++step) close(orders, step, {2});
  EXPECT_TRUE(orders.is_busy(2));
  orders.on_closed(step, std::vector<WorkerId>{2});
  EXPECT_FALSE(orders.is_busy(2));
  StragglerOrders stops(StragglerRule::kStop, 0.0, 1);
  for (step = 0; step < 1'000; ++step) close(stops, step, {2});
  EXPECT_LE(stops.pending(), StepLedger::kStepsRemembered + 2);
}

TEST(StragglerOrders, ProbesAreAsManyAsAskedForAndTheSameEveryTime) {
  const auto probed = [](uint64_t seed) {
    StragglerOrders orders(StragglerRule::kStop, 0.2, seed);
    std::set<std::pair<Step, WorkerId>> who;
    for (Step step = 0; step < 2'000; ++step) {
      const std::vector<WorkerId> stopped = close(orders, step, {0, 1, 2, 3, 4});
      size_t busy = 0;
      for (WorkerId worker = 0; worker < 5; ++worker) {
        if (!orders.is_busy(worker)) continue;
        ++busy;
        who.insert({step, worker});
        orders.on_late(step, worker);
      }
      EXPECT_EQ(stopped.size() + busy, 5u) << "everybody is one or the other";
    }
    return who;
  };
  const auto first = probed(1);
  EXPECT_EQ(first, probed(1));
  EXPECT_NE(first, probed(2));
  EXPECT_NEAR(static_cast<double>(first.size()), 2'000.0, 160.0);  // four deviations
}

TEST(StragglerOrders, MeasuresHowLongItTookToBeginAgain) {
  StragglerOrders orders(StragglerRule::kStop, 0.0, 1);
  close(orders, 7, {1}, 100ms);
  close(orders, 8, {1}, 110ms);
  const auto record =
      orders.on_abandoned(1, {.step = 7, .resumed = 9, .wasted = 40ms}, TimePoint(125ms));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->step, 7u);
  EXPECT_EQ(record->worker, 1u);
  EXPECT_EQ(record->resumed, 9u);
  EXPECT_EQ(record->wasted, 40ms);
  EXPECT_EQ(record->restart, 25ms) << "from the order that was for this step";
  EXPECT_EQ(orders.pending(), 0u) << "step 8 it never began";
}

TEST(StragglerOrders, IgnoresWhatMakesNoSense) {
  StragglerOrders orders(StragglerRule::kStop, 0.0, 1);
  close(orders, 7, {1}, 100ms);
  const TimePoint now = 200ms;
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 6, .resumed = 9}, now)) << "no such order";
  EXPECT_FALSE(orders.on_abandoned(2, {.step = 7, .resumed = 9}, now)) << "not to it";
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 7, .resumed = 7}, now));
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 7, .resumed = 8, .wasted = -1ms}, now));
  EXPECT_TRUE(orders.on_abandoned(1, {.step = 7, .resumed = 8}, now));
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 7, .resumed = 8}, now)) << "twice";
  close(orders, 8, {1}, 300ms);
  orders.on_lost(1);
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 8, .resumed = 9}, now)) << "its earlier life did";
}

}  // namespace
}  // namespace drover

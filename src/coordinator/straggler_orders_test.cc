// Stragglers are ordered to stop unless they may finish. A worker that finishes gets no order. The
// cost of stopping is measured.
#include "coordinator/straggler_orders.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "coordinator/step_ledger.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

// Closes a step with these stragglers. Returns the workers that are ordered to stop.
std::vector<WorkerId> close(StragglerOrders& orders, Step step,
                            const std::vector<WorkerId>& stragglers, TimePoint now = {}) {
  std::vector<WorkerId> ordered;
  orders.on_closed(step, stragglers);
  for (const WorkerId worker : stragglers) {
    if (orders.stop(step, worker, now)) ordered.push_back(worker);
  }
  return ordered;
}

TEST(StragglerOrders, OrdersEveryStragglerToStop) {
  StragglerOrders orders(StragglerRule::kStop, 0.0, 1);
  EXPECT_EQ(close(orders, 0, {1, 3}), (std::vector<WorkerId>{1, 3}));
  EXPECT_EQ(close(orders, 1, {3}), std::vector<WorkerId>{3});
  EXPECT_FALSE(orders.is_busy(3));
}

TEST(StragglerOrders, OrLetsAllFinish) {
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

TEST(StragglerOrders, ABusyWorkerIsNotOrderedToStopForALaterStep) {
  StragglerOrders orders(StragglerRule::kStop, 1.0, 1);
  EXPECT_TRUE(close(orders, 4, {0}).empty());
  for (Step step = 5; step < 9; ++step) {
    EXPECT_TRUE(close(orders, step, {0}).empty());
    EXPECT_TRUE(orders.is_busy(0));
  }
  orders.on_late(3, 0);
  EXPECT_TRUE(orders.is_busy(0)) << "that was an earlier gradient";
  orders.on_late(4, 0);
  EXPECT_FALSE(orders.is_busy(0));
}

TEST(StragglerOrders, AWorkerThatArrivesInALaterStepIsNoLongerBusy) {
  StragglerOrders orders(StragglerRule::kFinish, 0.0, 1);
  close(orders, 4, {0, 1});
  close(orders, 5, {1});
  EXPECT_FALSE(orders.is_busy(0));
  EXPECT_TRUE(orders.is_busy(1));
  // It never took part in step 4, and is late for a later step.
  orders.on_late(6, 1);
  EXPECT_FALSE(orders.is_busy(1));
}

TEST(StragglerOrders, ForgetsWorkersThatNeverArrive) {
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

TEST(StragglerOrders, ProbesHaveTheGivenShareAndAreReproducible) {
  const auto probed = [](uint64_t seed) {
    StragglerOrders orders(StragglerRule::kStop, 0.2, seed);
    std::set<std::pair<Step, WorkerId>> probes;
    for (Step step = 0; step < 2'000; ++step) {
      const std::vector<WorkerId> stopped = close(orders, step, {0, 1, 2, 3, 4});
      size_t busy = 0;
      for (WorkerId worker = 0; worker < 5; ++worker) {
        if (!orders.is_busy(worker)) continue;
        ++busy;
        probes.insert({step, worker});
        orders.on_late(step, worker);
      }
      EXPECT_EQ(stopped.size() + busy, 5u) << "each straggler is stopped or busy";
    }
    return probes;
  };
  const auto first = probed(1);
  EXPECT_EQ(first, probed(1));
  EXPECT_NE(first, probed(2));
  EXPECT_NEAR(static_cast<double>(first.size()), 2'000.0, 160.0);  // four deviations
}

TEST(StragglerOrders, MeasuresTheTimeToResume) {
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
  EXPECT_EQ(record->restart, 25ms) << "since the order for this step";
  EXPECT_EQ(orders.pending(), 0u) << "it never began step 8";
}

TEST(StragglerOrders, IgnoresInvalidReports) {
  StragglerOrders orders(StragglerRule::kStop, 0.0, 1);
  close(orders, 7, {1}, 100ms);
  const TimePoint now = 200ms;
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 6, .resumed = 9}, now)) << "no such order";
  EXPECT_FALSE(orders.on_abandoned(2, {.step = 7, .resumed = 9}, now)) << "no order to worker 2";
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 7, .resumed = 7}, now));
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 7, .resumed = 8, .wasted = -1ms}, now));
  EXPECT_TRUE(orders.on_abandoned(1, {.step = 7, .resumed = 8}, now));
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 7, .resumed = 8}, now)) << "reported twice";
  close(orders, 8, {1}, 300ms);
  orders.on_lost(1);
  EXPECT_FALSE(orders.on_abandoned(1, {.step = 8, .resumed = 9}, now))
      << "its earlier incarnation was ordered";
}

}  // namespace
}  // namespace drover

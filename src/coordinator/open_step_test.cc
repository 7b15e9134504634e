// The outcomes of one step, derived from its closings: arrivals, contributions and run-times.
#include "coordinator/open_step.h"

#include <gtest/gtest.h>

#include <cmath>

namespace drover {
namespace {

using namespace std::chrono_literals;

StepClosed closing(std::vector<StepClosed::Arrival> arrivals, Duration elapsed = 40ms) {
  StepClosed closed;
  closed.step = 6;
  closed.elapsed = elapsed;
  closed.arrivals = std::move(arrivals);
  return closed;
}

OpenStep step_of(std::vector<StepClosed> closings, std::vector<WorkerId> alive,
                 StepMode mode = StepMode::kSynchronous) {
  OpenStep step;
  step.alive = std::move(alive);
  for (ShardId shard = 0; shard < closings.size(); ++shard) step.closed[shard] = closings[shard];
  count_outcomes(mode, step);
  return step;
}

TEST(OpenStep, AWorkerHasArrivedWhenItHasArrivedOnEveryShard) {
  const OpenStep step = step_of(
      {closing({{0, 10ms, 6}, {1, 25ms, 6}}, 30ms), closing({{0, 12ms, 6}}, 20ms)}, {0, 1, 2});
  EXPECT_TRUE(step.outcomes[0].arrived);
  EXPECT_EQ(step.outcomes[0].run_time, 12ms);
  EXPECT_FALSE(step.outcomes[1].arrived);
  EXPECT_EQ(step.outcomes[1].run_time, 25ms) << "a lower bound: the longest time seen";
  EXPECT_EQ(step.outcomes[2].run_time, 30ms) << "the longest that a shard waited";
  EXPECT_EQ(stragglers_of(step), (std::vector<WorkerId>{1, 2}));
  EXPECT_EQ(step.contributors, 1u);
  EXPECT_EQ(step.reports_missing, 1u);
}

TEST(OpenStep, AGradientThatWasTooLateForSomeBlocksHasItsTrueRunTime) {
  StepClosed closed = closing({{0, 40ms, 6}});
  closed.late = {{2, 7ms, 5}, {1, 30ms, 6}};
  const OpenStep step = step_of({closed}, {0, 1, 2});
  EXPECT_EQ(step.outcomes[1].run_time, 30ms);
  EXPECT_EQ(step.outcomes[2].run_time, 40ms) << "the late gradient was of another step";
}

TEST(OpenStep, ARefusedOrDroppedGradientDoesNotContribute) {
  StepClosed first = closing({{0, 1ms, 6}, {1, 1ms, 6}, {2, 1ms, 6}, {3, 1ms, 6}});
  StepClosed second = first;
  first.refused = {{1, 4}};
  second.outliers = {{.worker = 2, .used = false}, {.worker = 3, .used = true}};
  const OpenStep step = step_of({first, second}, {0, 1, 2, 3});
  EXPECT_TRUE(contributed(step, 0));
  EXPECT_FALSE(contributed(step, 1));
  EXPECT_FALSE(contributed(step, 2));
  EXPECT_TRUE(contributed(step, 3)) << "clipped, but used";
  EXPECT_EQ(step.contributors, 2u);
  EXPECT_EQ(step.reports_missing, 4u) << "refused gradients are reported too";
}

TEST(OpenStep, WithPartialPullsAllBlocksOfOneShardAreEnoughToTakePart) {
  const OpenStep step = step_of({closing({{0, 1ms, 6}, {1, 1ms, 6}}), closing({})}, {0, 1, 2});
  EXPECT_FALSE(took_part(step, 0, StepReport{})) << "without partial pulls";
  EXPECT_TRUE(took_part(step, 0, StepReport{.blocks = 4}));
  EXPECT_FALSE(took_part(step, 2, StepReport{.blocks = 4}));
  StepClosed refusing = closing({{0, 1ms, 6}});
  refusing.refused = {{0, 1}};
  EXPECT_FALSE(took_part(step_of({refusing, closing({})}, {0}), 0, StepReport{.blocks = 4}));
}

TEST(OpenStep, ARoundHasAsManyGradientsAsTheLeastServedShard) {
  StepClosed first = closing({{1, 7ms, 6}});
  first.gradients = 3;
  StepClosed second = closing({{2, 9ms, 6}});
  second.gradients = 5;
  const OpenStep round = step_of({first, second}, {0, 1, 2}, StepMode::kAsynchronous);
  EXPECT_EQ(round.contributors, 3u);
  EXPECT_EQ(round.reports_missing, 3u);
  EXPECT_FALSE(round.outcomes[0].arrived);
  EXPECT_TRUE(round.outcomes[1].arrived) << "one shard is enough";
  EXPECT_EQ(round.outcomes[1].run_time, 7ms);
}

TEST(OpenStep, AddsUpTheNoiseOfAllShardsEachTimeAnew) {
  StepClosed first = closing({});
  first.signal = 1.5;
  first.noise = 8.0;
  StepClosed second = closing({});
  second.signal = 0.5;
  second.noise = 2.0;
  OpenStep step = step_of({first, second}, {});
  count_outcomes(StepMode::kSynchronous, step);
  EXPECT_DOUBLE_EQ(step.noise.signal, 2.0);
  EXPECT_DOUBLE_EQ(step.noise.noise, 10.0);
}

TEST(OpenStep, NothingIsKnownOfRunTimesOfLostOrBusyWorkers) {
  OpenStep step = step_of({closing({{0, 4ms, 6}, {1, 5ms, 6}})}, {0, 1, 2, 3, 5});
  step.lost = {0, 2};
  step.busy = {1, 3};
  const StepTimes times = times_of(6, step, 7);
  EXPECT_EQ(times.step, 6u);
  EXPECT_EQ(times.known,
            (std::vector<Known>{Known::kArrived, Known::kArrived, Known::kNothing, Known::kNothing,
                                Known::kNothing, Known::kLonger, Known::kNothing}));
  EXPECT_EQ(times.seconds[0], 0.004);
  EXPECT_EQ(times.seconds[5], 0.040);
  EXPECT_EQ(times.elapsed, 0.040);
  EXPECT_EQ(times.contributors, 2u);
}

}  // namespace
}  // namespace drover

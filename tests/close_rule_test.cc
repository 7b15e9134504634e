// A shard and a replay (policy/close_rule.h) close the same step with the same gradients at the
// same time.
#include "policy/close_rule.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "shard/shard_time_fixture.h"

namespace drover {
namespace {

// Random run-times, many of them equal, under random choices: the shard closes each step as the
// rule of replays does.
TEST_F(ShardTimeTest, AgreesWithTheCloseRule) {
  std::mt19937_64 random(1);
  start(7, 2'000);
  for (Step step = 0; step < 2'000; ++step) {
    const TimePoint opened = now_;
    std::vector<std::pair<Duration, WorkerId>> arrivals;
    std::vector<double> sorted;
    for (WorkerId worker = 0; worker < workers_; ++worker) {
      arrivals.emplace_back(Duration(1 + random() % 12), worker);
      sorted.push_back(static_cast<double>(arrivals.back().first.count()));
    }
    std::sort(arrivals.begin(), arrivals.end());
    std::sort(sorted.begin(), sorted.end());
    Choice choice{.cutoff = static_cast<uint32_t>(1 + random() % workers_)};
    if (random() % 4 != 0) choice.time_limit = static_cast<double>(1 + random() % 14);
    choice.at_least = static_cast<uint32_t>(1 + random() % choice.cutoff);

    decide(step, {.cutoff = choice.cutoff,
                  .time_limit = choice.time_limit == kNoTimeLimit ? 0.0 : choice.time_limit,
                  .at_least = choice.at_least});
    std::vector<StepClosed> closed;
    for (const auto& [run_time, worker] : arrivals) {
      wait_until(opened + run_time);
      if (closed = take<StepClosed>(); !closed.empty()) break;
      push(worker, step);
      if (closed = take<StepClosed>(); !closed.empty()) break;
    }
    const StepClose expected = close_of(choice, sorted);
    ASSERT_EQ(closed.size(), 1u) << "step " << step;
    ASSERT_EQ(closed[0].arrivals.size(), expected.contributors) << "step " << step;
    ASSERT_EQ(static_cast<double>(closed[0].elapsed.count()), expected.elapsed) << "step " << step;
    now_ = opened + closed[0].elapsed;  // the next one opens when this one closes
  }
}

}  // namespace
}  // namespace drover

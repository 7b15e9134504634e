#include "sim/extra_delays.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr Party kShard1{Role::kShard, 1};
constexpr FrameHeader kParameters{.type = FrameType::kParameters};

TEST(ExtraDelays, ASlowShardsAnswersAreLate) {
  Scenario scenario;
  scenario.slow_shards = {{.shard = 1, .share = 1.0, .delay = 2s}};
  ExtraDelays delays(scenario, 1);
  EXPECT_EQ(delays.of(kShard1, worker_party(0), kParameters), 2s);
  EXPECT_EQ(delays.of({Role::kStandby, 1}, worker_party(0), kParameters), 2s)
      << "a standby that serves the shard";
  EXPECT_EQ(delays.of({Role::kShard, 0}, worker_party(0), kParameters), 0s) << "another shard";
  EXPECT_EQ(delays.of(kShard1, worker_party(0), {.type = FrameType::kAnswer}), 0s);
}

TEST(ExtraDelays, AllBlocksOfAnAnswerHaveTheSameDelay) {
  Scenario scenario;
  scenario.slow_shards = {{.shard = 1, .share = 0.5, .delay = 2s}};
  ExtraDelays delays(scenario, 1);
  int late = 0;
  for (uint64_t pull = 0; pull < 100; ++pull) {
    FrameHeader first = kParameters;
    first.step = pull;
    FrameHeader second = first;
    second.block = 1;
    const Duration delay = delays.of(kShard1, worker_party(0), first);
    EXPECT_EQ(delays.of(kShard1, worker_party(0), second), delay);
    late += delay > 0s;
  }
  EXPECT_GT(late, 30);
  EXPECT_LT(late, 70);
}

TEST(ExtraDelays, AShareOfASlowCoordinatorsMessagesIsLate) {
  Scenario scenario;
  scenario.slow_coordinator = SlowCoordinator{.share = 0.5, .delay = 3s};
  ExtraDelays delays(scenario, 1);
  int late = 0;
  for (int message = 0; message < 100; ++message)
    late += delays.of(kCoordinatorParty, kShard1, {}) == 3s;
  EXPECT_GT(late, 30);
  EXPECT_LT(late, 70);
  EXPECT_EQ(delays.of(kShard1, kCoordinatorParty, {}), 0s);
}

}  // namespace
}  // namespace drover

// A synchronous shard: graces and partial pulls. Blocks may be behind their workers, and pulls do
// not starve.
#include "shard/sync_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "shard/shard.h"
#include "wire/limits.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

class SyncProtocolTest : public ::testing::Test {
 protected:
  void start(uint32_t workers, bool partial_pull, Duration grace = {},
             RateRule rule = RateRule::kNone) {
    const Layout layout({{"a", 4, TensorKind::kTrained}, {"b", 5'000, TensorKind::kTrained}});
    workers_ = workers;
    Plan plan{.workers = workers,
              .steps = 100,
              .learning = {.schedule = {.base = 1.0, .rule = rule}},
              .full_samples = workers,
              .partial_pull = partial_pull,
              .push_grace = grace,
              .tensors = layout.tensors(),
              .blocks = plan_blocks(layout, 1)};
    plan.learning.optimizer.kind = OptimizerKind::kSgd;
    shard_.on_plan(plan);
    for (WorkerId worker = 0; worker < workers; ++worker) shard_.on_joined(worker, out_);
    ASSERT_TRUE(push(0, kInitialStep, 0, 0.0f, 0).ok());
    offer(0, kInitialStep);
    send_granted(0, kInitialStep, 0.0f);
  }
  FrameHeader header(FrameType type, WorkerId worker, Step step, BlockId block) const {
    return {.type = type, .step = step, .worker = worker, .block = block, .samples = 1};
  }
  SharedBuffer floats(size_t size, float value) {
    SharedBuffer values = shard_.pool().take(size);
    std::fill(values->span().begin(), values->span().end(), value);
    return values;
  }
  // The small block, which is sent with its offer.
  Status push(WorkerId worker, Step step, BlockId block = 0, float value = 1.0f,
              uint32_t samples = 1) {
    FrameHeader small = header(FrameType::kOffer, worker, step, block);
    small.samples = samples;
    small.length = 16;
    return shard_.on_frame(worker, small, floats(4, value), now_, out_);
  }
  // The large block, which has to be granted.
  void offer(WorkerId worker, Step step) {
    ASSERT_TRUE(
        shard_.on_frame(worker, header(FrameType::kOffer, worker, step, 1), nullptr, now_, out_)
            .ok());
  }
  bool granted(WorkerId worker, Step step) const {
    return std::any_of(out_.begin(), out_.end(), [&](const Outgoing& each) {
      const FrameHeader& frame = each.frame.header;
      return frame.type == FrameType::kGrant && frame.step == step && frame.worker == worker;
    });
  }
  void send_granted(WorkerId worker, Step step, float value) {
    ASSERT_TRUE(granted(worker, step));
    FrameHeader large = header(FrameType::kBlock, worker, step, 1);
    large.length = 20'000;
    ASSERT_TRUE(shard_.on_frame(worker, large, floats(5'000, value), now_, out_).ok());
  }
  void push_all(WorkerId worker, Step step) {
    ASSERT_TRUE(push(worker, step).ok());
    offer(worker, step);
    send_granted(worker, step, 1.0f);
  }
  void pull(WorkerId worker, Version version, uint32_t received = 0) {
    FrameHeader ask = header(FrameType::kPull, worker, ++request_, 0);
    ask.version = version;
    ask.place = received;
    ASSERT_TRUE(shard_.on_frame(worker, ask, nullptr, now_, out_).ok());
  }
  void decide(Step step, uint32_t cutoff, Duration limit = {}, uint32_t at_least = 1) {
    Decision decision{.step = step, .cutoff = cutoff, .time_limit = limit, .at_least = at_least};
    for (WorkerId worker = 0; worker < workers_; ++worker) decision.alive.push_back(worker);
    shard_.on_decision(decision, now_, out_);
  }
  void wait_until(TimePoint when) {
    while (const auto alarm = shard_.wake_at()) {
      if (*alarm > when) break;
      now_ = std::max(now_, *alarm);
      shard_.on_time(now_, out_);
    }
    now_ = when;
  }
  std::vector<StepClosed> closed() {
    std::vector<StepClosed> found;
    for (const Outgoing& each : out_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control && std::holds_alternative<StepClosed>(*control))
        found.push_back(std::get<StepClosed>(*control));
    }
    out_.clear();
    return found;
  }
  std::vector<Answer> answers(WorkerId worker, Step step, BlockId block) const {
    std::vector<Answer> found;
    for (const Outgoing& each : out_) {
      const FrameHeader& frame = each.frame.header;
      if (frame.type == FrameType::kAnswer && frame.worker == worker && frame.step == step &&
          frame.block == block)
        found.push_back(frame.answer);
    }
    return found;
  }
  // The versions of a block sent to a worker since out_ was cleared, and the first value of the
  // last.
  std::vector<Version> sent(WorkerId worker, BlockId block, float* value = nullptr) const {
    std::vector<Version> versions;
    for (const Outgoing& each : out_) {
      const FrameHeader& frame = each.frame.header;
      if (frame.type != FrameType::kParameters || each.to.index != worker || frame.block != block)
        continue;
      versions.push_back(frame.version);
      if (value) *value = std::get<FloatSlice>(each.frame.payload).span().front();
    }
    return versions;
  }

  uint32_t workers_ = 0;
  Shard shard_{0};
  Outbox out_;
  TimePoint now_{};
  uint64_t request_ = 0;
};

TEST_F(SyncProtocolTest, ABlockClosesAGraceAfterTheCutoff) {
  start(4, false, 5ms);
  decide(0, 2);
  now_ = 10ms;
  push_all(0, 0);
  now_ = 12ms;
  push_all(1, 0);
  EXPECT_TRUE(closed().empty());
  EXPECT_EQ(shard_.wake_at(), TimePoint(17ms));
  now_ = 16ms;
  push_all(2, 0);
  EXPECT_TRUE(closed().empty());
  wait_until(17ms);
  const auto steps = closed();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].arrivals.size(), 3u) << "a push within the grace is used";
  EXPECT_EQ(steps[0].block_counts, (std::vector<BlockCount>{{3, 2}}));
}

TEST_F(SyncProtocolTest, NoGraceIfNoPushIsMissing) {
  start(2, false, 5ms);
  decide(0, 1);
  push_all(0, 0);
  EXPECT_TRUE(closed().empty());
  push_all(1, 0);
  EXPECT_EQ(closed().size(), 1u);
}

TEST_F(SyncProtocolTest, ATimeLimitEndsTheGrace) {
  start(4, false, 50ms);
  decide(0, 2, 20ms);
  now_ = 15ms;
  push_all(0, 0);
  push_all(1, 0);
  EXPECT_EQ(shard_.wake_at(), TimePoint(20ms));
  wait_until(20ms);
  EXPECT_EQ(closed().size(), 1u);
  decide(1, 4, 20ms, 1);
  now_ = 45ms;
  push_all(0, 1);
  EXPECT_EQ(closed().size(), 1u) << "the limit is over, and the minimum has arrived";
}

TEST_F(SyncProtocolTest, ADecisionInsideTheStepMovesTheEndOfTheGrace) {
  start(4, false, 5ms);
  decide(0, 3);
  now_ = 10ms;
  push_all(0, 0);
  now_ = 11ms;
  push_all(1, 0);
  EXPECT_FALSE(shard_.wake_at());
  now_ = 13ms;
  decide(0, 2);
  EXPECT_EQ(shard_.wake_at(), TimePoint(16ms)) << "the grace begins when it had enough";
  decide(0, 1);
  EXPECT_EQ(shard_.wake_at(), TimePoint(15ms));
  now_ = 20ms;
  decide(0, 1);
  EXPECT_EQ(closed().size(), 1u);
}

// The rule is applied with each block's own number of gradients.
TEST_F(SyncProtocolTest, EachBlockHasItsOwnLearningRate) {
  start(4, false, {}, RateRule::kLinear);
  decide(0, 2);
  push_all(0, 0);
  ASSERT_TRUE(push(1, 0).ok());  // the small block has two gradients, and closes
  offer(1, 0);
  decide(0, 3);
  send_granted(1, 0, 1.0f);
  push_all(2, 0);
  const auto steps = closed();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].block_counts, (std::vector<BlockCount>{{2, 1}, {3, 1}}));
  pull(3, 1);
  float small = 0.0f;
  float large = 0.0f;
  sent(3, 0, &small);
  sent(3, 1, &large);
  // The mean of the gradients is 1, the learning rate 1 times what arrived of 4.
  EXPECT_FLOAT_EQ(small, -2.0f / 4.0f);
  EXPECT_FLOAT_EQ(large, -3.0f / 4.0f);
}

TEST_F(SyncProtocolTest, WithoutPartialPullsNoWorkerIsAheadOfABlock) {
  start(2, false);
  decide(0, 2);
  EXPECT_FALSE(push(0, 1).ok());
}

TEST_F(SyncProtocolTest, NoWorkerIsAheadWithoutBound) {
  start(2, true);
  decide(0, 2);
  EXPECT_TRUE(push(0, kPushedAheadMax).ok());
  EXPECT_FALSE(push(0, kPushedAheadMax + 1).ok());
}

TEST_F(SyncProtocolTest, APushForALaterStepIsKeptUntilThen) {
  start(2, true);
  decide(0, 2);
  ASSERT_TRUE(push(0, 1).ok());
  offer(0, 1);
  EXPECT_TRUE(answers(0, 1, 0).empty());
  EXPECT_FALSE(granted(0, 1)) << "it is not granted yet";
  pull(0, 2);  // worker 0 is done with steps 0 and 1
  push_all(1, 0);
  EXPECT_EQ(answers(0, 1, 0), std::vector<Answer>{Answer::kAccepted});
  EXPECT_TRUE(granted(0, 1));
  send_granted(0, 1, 1.0f);
  push_all(1, 1);
  const auto steps = closed();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].arrivals.size(), 1u);
  EXPECT_EQ(steps[1].arrivals.size(), 2u);
}

TEST_F(SyncProtocolTest, KeepsTheLastEarlyPushOfEachWorker) {
  start(2, true);
  decide(0, 2);
  const size_t before = shard_.pending();
  for (Step step = 1; step <= 40; ++step) {
    ASSERT_TRUE(push(0, step).ok());
    if (step == 1) continue;
    ASSERT_EQ(answers(0, step - 1, 0), std::vector<Answer>{Answer::kLate});
  }
  ASSERT_TRUE(push(0, 40).ok());
  EXPECT_EQ(answers(0, 40, 0), std::vector<Answer>{Answer::kDuplicate});
  EXPECT_LE(shard_.pending(), before + 41) << "one entry for each step, and one push in total";
}

TEST_F(SyncProtocolTest, DoesNotWaitForAWithdrawnPush) {
  start(2, true);
  decide(0, 2);
  push_all(1, 0);
  ASSERT_TRUE(push(0, 0).ok());
  offer(0, 0);
  pull(0, 1);
  out_.clear();
  // The worker has continued twice, and its buffer now belongs to another step.
  ASSERT_TRUE(shard_.on_frame(0, header(FrameType::kBlock, 0, 0, 1), nullptr, now_, out_).ok());
  EXPECT_EQ(answers(0, 0, 1), std::vector<Answer>{Answer::kLate});
  EXPECT_EQ(closed().size(), 1u);
}

TEST_F(SyncProtocolTest, AShardThatWasBehindCatchesUp) {
  start(3, true);
  decide(0, 3);
  for (const WorkerId worker : {0u, 1u, 2u}) {
    for (Step step = 1; step <= 5; ++step) ASSERT_TRUE(push(worker, step).ok());
    pull(worker, 6);
  }
  // All workers are done with the steps before 6. Steps before 5 close without a gradient, step 5
  // with the kept pushes.
  const auto steps = closed();
  ASSERT_EQ(steps.size(), 6u);
  for (Step step = 0; step < 6; ++step) {
    EXPECT_EQ(steps[step].step, step);
    const BlockCount small = step < 5 ? BlockCount{0, 2} : BlockCount{0, 1};
    EXPECT_EQ(steps[step].block_counts.front(), small);
  }
  EXPECT_EQ(steps[5].block_counts.back(), (BlockCount{3, 1}));
}

TEST_F(SyncProtocolTest, ClosesABoundedNumberOfStepsWithoutDecisions) {
  start(1, true);
  decide(0, 1);
  pull(0, 60);
  EXPECT_EQ(closed().size(), kUndecidedMax + 1);
  decide(10, 1);
  EXPECT_EQ(closed().size(), 10u);
}

TEST_F(SyncProtocolTest, APullIsServedTheNewestAndStaysOpenForItsVersion) {
  start(2, true);
  decide(0, 2);
  out_.clear();
  pull(0, 3);
  EXPECT_EQ(sent(0, 0), std::vector<Version>{0});
  pull(1, 1);
  EXPECT_EQ(sent(0, 0), (std::vector<Version>{0, 1}))
      << "both workers are done, so the step closes";
  out_.clear();
  pull(0, 3, 2);
  EXPECT_TRUE(sent(0, 0).empty()) << "nothing is newer than what was sent";
  pull(1, 3, 2);
  EXPECT_EQ(sent(0, 0).back(), 3u);
  out_.clear();
  pull(1, 9, 4);
  EXPECT_TRUE(sent(0, 0).empty()) << "it has the pulled version";
}

TEST_F(SyncProtocolTest, BoundsWhatIsSentToASlowReader) {
  start(2, true);
  decide(0, 2);
  out_.clear();
  pull(0, 15);
  for (Version version = 1; version <= 15; ++version)
    pull(1, version, 2 * static_cast<uint32_t>(version) - 2);
  EXPECT_EQ(sent(0, 0).size() + sent(0, 1).size(), 4u) << "two rounds of two blocks";
  out_.clear();
  pull(0, 15, 4);
  EXPECT_EQ(sent(0, 0), std::vector<Version>{15}) << "then the newest version";
}

TEST_F(SyncProtocolTest, NothingIsKeptOfALostWorker) {
  start(2, true);
  decide(0, 2);
  const size_t before = shard_.pending();
  ASSERT_TRUE(push(0, 2).ok());
  offer(0, 2);
  pull(0, 3);
  shard_.on_lost(0, now_, out_);
  EXPECT_LE(shard_.pending(), before + 1);
}

}  // namespace
}  // namespace drover

// An asynchronous shard: each gradient is applied at once, a round has as many gradients as there
// are workers, and with a bound on staleness no worker gets further ahead of the slowest.
#include "shard/async_protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "shard/shard.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(AsyncProtocol, RefusesPushesBeforeItHasParameters) {
  const Layout layout({{"a", 4, TensorKind::kTrained}});
  Shard shard(0);
  Outbox out;
  shard.on_plan({.workers = 1,
                 .steps = 3,
                 .asynchronous = true,
                 .tensors = layout.tensors(),
                 .blocks = plan_blocks(layout, 1)});
  shard.on_joined(0, out);
  const FrameHeader push{
      .type = FrameType::kOffer, .step = 0, .worker = 0, .block = 0, .samples = 1, .length = 16};
  EXPECT_FALSE(shard.payload_floats(0, push).ok());
  EXPECT_FALSE(shard.on_frame(0, push, shard.pool().take(4), 0s, out).ok());
}

class AsyncProtocolTest : public ::testing::Test {
 protected:
  void start(uint32_t workers, std::optional<uint64_t> staleness = {}, Step steps = 3,
             RateRule rule = RateRule::kNone) {
    const Layout layout({{"a", 4, TensorKind::kTrained}, {"b", 4, TensorKind::kTrained}});
    workers_ = workers;
    shard_.on_plan({.workers = workers,
                    .steps = steps,
                    .learning = {.schedule = {.base = 1.0, .rule = rule}},
                    .full_samples = 8,
                    .asynchronous = true,
                    .staleness = staleness,
                    .tensors = layout.tensors(),
                    .blocks = plan_blocks(layout, 1)});
    for (WorkerId worker = 0; worker < workers; ++worker) shard_.on_joined(worker, out_);
    for (const BlockId block : {0u, 1u}) push_block(0, kInitialStep, block, 0.0f);
    decide(0);
    for (WorkerId worker = 0; worker < workers; ++worker) pull(worker, 0);
  }

  void decide(Step step) {
    Decision decision{.step = step, .cutoff = workers_};
    for (WorkerId worker = 0; worker < workers_; ++worker) decision.alive.push_back(worker);
    shard_.on_decision(decision, now_, out_);
  }

  Answer push_block(WorkerId worker, Step step, BlockId block, float value) {
    const FrameHeader header{.type = FrameType::kOffer,
                             .step = step,
                             .worker = worker,
                             .block = block,
                             .samples = 2,
                             .length = 16};
    SharedBuffer values = shard_.pool().take(4);
    std::fill(values->span().begin(), values->span().end(), value);
    out_.clear();
    EXPECT_TRUE(shard_.on_frame(worker, header, std::move(values), now_, out_).ok());
    for (const Outgoing& each : out_) {
      if (each.frame.header.type == FrameType::kAnswer) return each.frame.header.answer;
    }
    ADD_FAILURE() << "every push is answered";
    return Answer::kLate;
  }
  void push(WorkerId worker, Step step, float value) {
    for (const BlockId block : {0u, 1u})
      EXPECT_EQ(push_block(worker, step, block, value), Answer::kAccepted);
  }

  // Whether parameters are sent to the worker at once.
  bool pull(WorkerId worker, Version version) {
    out_.clear();
    const FrameHeader header{.type = FrameType::kPull, .version = version, .worker = worker};
    EXPECT_TRUE(shard_.on_frame(worker, header, nullptr, now_, out_).ok());
    return sent_to(worker) == 2;
  }
  // Blocks of parameters in the outbox; the last value is in last_.
  size_t sent_to(WorkerId worker) {
    size_t count = 0;
    for (const Outgoing& each : out_) {
      if (each.frame.header.type != FrameType::kParameters || each.to.index != worker) continue;
      last_ = std::get<FloatSlice>(each.frame.payload).span()[0];
      ++count;
    }
    return count;
  }

  std::optional<StepClosed> closed() const {
    for (const Outgoing& each : out_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control == nullptr) continue;
      if (const auto* message = std::get_if<StepClosed>(control)) return *message;
    }
    return std::nullopt;
  }

  uint32_t workers_ = 0;
  Shard shard_{0};
  Outbox out_;
  TimePoint now_{};
  float last_ = 0.0f;
};

TEST_F(AsyncProtocolTest, AppliesEachGradientAtOnce) {
  start(3);
  push(1, 0, 1.0f);
  EXPECT_TRUE(pull(1, 1)) << "its worker continues without waiting for others";
  EXPECT_EQ(last_, -1.0f);
  push(1, 1, 4.0f);
  EXPECT_TRUE(pull(1, 2));
  EXPECT_EQ(last_, -5.0f);
}

TEST_F(AsyncProtocolTest, ALearningRateRuleUsesTheSamplesOfEachGradient) {
  start(3, {}, 3, RateRule::kLinear);
  push(1, 0, 1.0f);
  EXPECT_TRUE(pull(1, 1));
  EXPECT_EQ(last_, -0.25f) << "two samples of eight";
}

TEST_F(AsyncProtocolTest, ARoundReportsNoNoise) {
  start(2);
  push(0, 0, 1.0f);
  push(1, 0, 2.0f);
  ASSERT_TRUE(closed());
  EXPECT_TRUE(std::isnan(closed()->signal));
  EXPECT_TRUE(std::isnan(closed()->noise));
}

TEST_F(AsyncProtocolTest, ARoundHasAsManyGradientsAsThereAreWorkers) {
  start(2);
  now_ = 30ns;
  push(1, 0, 1.0f);
  EXPECT_FALSE(closed());
  pull(1, 1);
  now_ = 50ns;
  push(1, 1, 1.0f);
  ASSERT_TRUE(closed());
  EXPECT_EQ(closed()->step, 0u);
  EXPECT_EQ(closed()->gradients, 2u);
  EXPECT_EQ(closed()->samples, 4u);
  EXPECT_EQ(closed()->elapsed, 50ns);
  const std::vector<StepClosed::Arrival> expected = {{1, 20ns, 0}};
  EXPECT_EQ(closed()->arrivals, expected) << "the last gradient, since its parameters were sent";
}

TEST_F(AsyncProtocolTest, ParametersSentToAWorkerIncludeItsOwnGradient) {
  start(1);
  push_block(0, 0, 0, 1.0f);
  EXPECT_FALSE(pull(0, 1)) << "the second block has not arrived yet";
  push_block(0, 0, 1, 1.0f);
  EXPECT_EQ(sent_to(0), 1u);
}

TEST_F(AsyncProtocolTest, CountsAGradientOnce) {
  start(2);
  push(0, 0, 1.0f);
  EXPECT_EQ(push_block(0, 0, 0, 1.0f), Answer::kDuplicate);
  EXPECT_FALSE(closed());
}

TEST_F(AsyncProtocolTest, HoldsBackAWorkerThatIsTooFarAhead) {
  start(2, 1);
  push(0, 0, 1.0f);
  EXPECT_TRUE(pull(0, 1)) << "one step ahead is allowed";
  push(0, 1, 1.0f);
  EXPECT_FALSE(pull(0, 2)) << "two steps ahead are not";
  push(1, 0, 1.0f);
  EXPECT_EQ(sent_to(0), 2u) << "the slowest worker has advanced";
}

TEST_F(AsyncProtocolTest, ALostWorkerHoldsNoWorkerBack) {
  start(2, 0);
  push(0, 0, 1.0f);
  EXPECT_FALSE(pull(0, 1));
  out_.clear();
  shard_.on_lost(1, now_, out_);
  EXPECT_EQ(sent_to(0), 2u);
  ASSERT_TRUE(closed()) << "a round of one, from now on";
  EXPECT_EQ(closed()->gradients, 1u);
}

TEST_F(AsyncProtocolTest, AReturningWorkerContinuesFromTheNewestVersion) {
  start(2, {}, 10);
  push(1, 0, 1.0f);
  shard_.on_lost(1, now_, out_);
  for (Step step = 0; step < 4; ++step) push(0, step, 1.0f);
  shard_.on_joined(1, out_);
  EXPECT_TRUE(pull(1, 0));
  EXPECT_EQ(push_block(1, 5, 0, 1.0f), Answer::kLate) << "it is not a member yet";
  EXPECT_EQ(push_block(1, 5, 1, 1.0f), Answer::kLate);
  decide(5);
  EXPECT_TRUE(pull(1, 6)) << "unused gradients do not hold it up";
  push(1, 6, 1.0f);
}

TEST_F(AsyncProtocolTest, RefusesNanAndCountsItInTheRound) {
  start(1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(push_block(0, 0, 0, nan), Answer::kNotFinite);
  EXPECT_EQ(push_block(0, 0, 1, 1.0f), Answer::kAccepted);
  ASSERT_TRUE(closed());
  EXPECT_EQ(closed()->gradients, 0u) << "of the block with the fewest gradients";
  EXPECT_EQ(closed()->refused, (std::vector<StepClosed::Refused>{{0, 0}}));
  EXPECT_TRUE(pull(0, 1));
}

TEST_F(AsyncProtocolTest, ServesPullsAfterItsLastRound) {
  start(1);
  for (Step step = 0; step < 3; ++step) push(0, step, 1.0f);
  EXPECT_TRUE(shard_.finished());
  EXPECT_NE(closed()->digest, 0u);
  EXPECT_EQ(push_block(0, 3, 0, 1.0f), Answer::kLate);
  EXPECT_EQ(push_block(0, 3, 1, 1.0f), Answer::kLate);
  EXPECT_TRUE(pull(0, 4)) << "other shards may still need this worker's gradients";
  EXPECT_EQ(last_, -3.0f);
}

}  // namespace
}  // namespace drover

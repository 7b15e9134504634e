// A shard collects gradients, closes steps, publishes versions and answers pulls. It tolerates
// workers that leave, are late, or send invalid frames.
#include "shard/shard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/test_text.h"
#include "wire/limits.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Not;

using namespace std::chrono_literals;

constexpr uint32_t kLength = 8'192;  // too large to travel with its offer

class ShardTest : public ::testing::Test {
 protected:
  // Two workers, one block of kLength floats and one of 4, plain SGD with learning rate 1.
  void start(uint32_t workers = 2, Step steps = 10, Step evaluate_every = 0) {
    const Layout layout(
        {{"large", kLength, TensorKind::kTrained}, {"small", 4, TensorKind::kTrained}});
    plan_ = Plan{.workers = workers,
                 .steps = steps,
                 .evaluate_every = evaluate_every,
                 .learning = {.schedule = {.base = 1.0}, .deterministic = false},
                 .tensors = layout.tensors(),
                 .blocks = plan_blocks(layout, 1)};
    shard_.on_plan(plan_);
    for (WorkerId worker = 0; worker < workers; ++worker) shard_.on_joined(worker, out_);
    send_initial(0);
  }

  void send_initial(WorkerId worker) {
    for (const Block& block : plan_.blocks.blocks) push(worker, kInitialStep, block.id, 0.0f, 0);
  }

  void open(uint32_t cutoff = 2) { decide(0, cutoff); }

  void decide(Step step, uint32_t cutoff) {
    std::vector<WorkerId> alive;
    for (WorkerId worker = 0; worker < plan_.workers; ++worker) alive.push_back(worker);
    shard_.on_decision({.step = step, .cutoff = cutoff, .alive = alive}, now_, out_);
  }

  SharedBuffer filled(size_t size, float value) {
    SharedBuffer buffer = shard_.pool().take(size);
    std::fill(buffer->span().begin(), buffer->span().end(), value);
    return buffer;
  }

  // Offers a block; sends it if it is granted. Returns the answer, if there is one.
  std::optional<Answer> push(WorkerId worker, Step step, BlockId block, float value,
                             uint32_t samples = 1) {
    const uint32_t length = plan_.blocks.blocks[block].length;
    FrameHeader header{.type = FrameType::kOffer,
                       .step = step,
                       .worker = worker,
                       .block = block,
                       .samples = samples};
    const bool small = length * sizeof(float) <= 16'384;
    if (small) header.length = length * static_cast<uint32_t>(sizeof(float));
    out_.clear();
    EXPECT_TRUE(
        shard_.on_frame(worker, header, small ? filled(length, value) : nullptr, now_, out_).ok());
    if (const auto answer = find_answer(worker)) return answer;
    const bool granted = std::any_of(out_.begin(), out_.end(), [&](const Outgoing& each) {
      return each.frame.header.type == FrameType::kGrant && each.to.index == worker &&
             each.frame.header.block == block;
    });
    if (!granted) return std::nullopt;
    header.type = FrameType::kBlock;
    header.length = length * static_cast<uint32_t>(sizeof(float));
    out_.clear();
    EXPECT_TRUE(shard_.on_frame(worker, header, filled(length, value), now_, out_).ok());
    return find_answer(worker);
  }

  std::optional<Answer> find_answer(WorkerId worker) const {
    for (const Outgoing& each : out_) {
      if (each.frame.header.type == FrameType::kAnswer && each.to.index == worker)
        return each.frame.header.answer;
    }
    return std::nullopt;
  }

  void push_all(WorkerId worker, Step step, float value, uint32_t samples = 1) {
    for (const Block& block : plan_.blocks.blocks) push(worker, step, block.id, value, samples);
  }

  std::vector<Outgoing> parameters_in_outbox() const {
    std::vector<Outgoing> found;
    for (const Outgoing& each : out_) {
      if (each.frame.header.type == FrameType::kParameters) found.push_back(each);
    }
    return found;
  }

  std::optional<StepClosed> closed_in_outbox() const {
    for (const Outgoing& each : out_) {
      if (const auto* control = std::get_if<Control>(&each.frame.payload)) {
        if (const auto* closed = std::get_if<StepClosed>(control)) return *closed;
      }
    }
    return std::nullopt;
  }

  // First value of `block`, as a worker would see it now.
  float parameter(BlockId block, Version version, bool snapshot = false) {
    out_.clear();
    const FrameHeader pull{.type = FrameType::kPull,
                           .flags = static_cast<uint16_t>(snapshot ? kSnapshotFlag : 0),
                           .version = version,
                           .worker = 0};
    EXPECT_TRUE(shard_.on_frame(0, pull, nullptr, now_, out_).ok());
    for (const Outgoing& each : parameters_in_outbox()) {
      if (each.frame.header.block == block)
        return std::get<FloatSlice>(each.frame.payload).span()[0];
    }
    return std::numeric_limits<float>::quiet_NaN();
  }

  Plan plan_;
  Shard shard_{0};
  Outbox out_;
  TimePoint now_{};
};

TEST_F(ShardTest, UsesTheLearningRateThatWorkersSet) {
  start();
  open();
  const auto step = [&](Step number, float gradient) {
    for (const WorkerId worker : {0u, 1u}) push_all(worker, number, gradient);
  };
  step(0, 1.0f);
  EXPECT_FLOAT_EQ(parameter(1, 1), -1.0f) << "the schedule's rate, until a worker sets one";
  ASSERT_TRUE(shard_.on_rate(1, {.from = 1, .rate = 0.5}).ok());
  ASSERT_TRUE(shard_.on_rate(0, {.from = 1, .rate = 0.25}).ok());
  ASSERT_TRUE(shard_.on_rate(1, {.from = 1, .rate = 0.5}).ok());
  decide(1, 2);
  step(1, 1.0f);
  EXPECT_FLOAT_EQ(parameter(1, 2), -1.25f) << "if workers disagree, the lowest worker number wins";
  ASSERT_TRUE(shard_.on_rate(0, {.from = 3, .rate = 0.0}).ok());
  decide(2, 2);
  step(2, 1.0f);
  EXPECT_FLOAT_EQ(parameter(1, 3), -1.5f) << "it holds until another rate is set";
  decide(3, 2);
  step(3, 1.0f);
  EXPECT_FLOAT_EQ(parameter(1, 4), -1.5f);
}

TEST_F(ShardTest, KeepsNoMoreLearningRatesThanItNeeds) {
  start();
  open();
  EXPECT_FALSE(shard_.on_rate(0, {.from = 1'000'000, .rate = 1.0}).ok()) << "too far ahead";
  const size_t before = shard_.pending();
  for (Step number = 0; number < 9; ++number) {
    ASSERT_TRUE(shard_.on_rate(0, {.from = number, .rate = 1.0}).ok());
    decide(number, 2);
    for (const WorkerId worker : {0u, 1u}) push_all(worker, number, 1.0f);
  }
  EXPECT_LT(shard_.pending(), before + 12) << "openings of steps are kept, too";
}

TEST_F(ShardTest, WaitsForAWorkerThatPullsAhead) {
  start();
  open();
  push_all(0, 0, 1.0f);
  const FrameHeader ahead{
      .type = FrameType::kPull, .flags = kNotDoneFlag, .step = 1, .version = 1, .worker = 1};
  ASSERT_TRUE(shard_.on_frame(1, ahead, nullptr, now_, out_).ok());
  EXPECT_FALSE(closed_in_outbox()) << "its gradient is still missing";
  const FrameHeader snapshot{
      .type = FrameType::kPull, .flags = kSnapshotFlag, .step = 1, .version = 5, .worker = 1};
  ASSERT_TRUE(shard_.on_frame(1, snapshot, nullptr, now_, out_).ok());
  push_all(1, 0, 3.0f);
  EXPECT_EQ(parameters_in_outbox().size(), 1u)
      << "answers the pull made ahead, although there was another pull since";
  EXPECT_TRUE(closed_in_outbox());
}

TEST_F(ShardTest, DoesNotWaitForAWorkerThatIsDone) {
  start();
  open();
  push_all(0, 0, 1.0f);
  out_.clear();
  const FrameHeader nothing_more{.type = FrameType::kDone, .version = 1, .worker = 1};
  ASSERT_TRUE(shard_.on_frame(1, nothing_more, nullptr, now_, out_).ok());
  EXPECT_TRUE(closed_in_outbox());
  EXPECT_TRUE(parameters_in_outbox().empty()) << "nothing was pulled";
}

TEST_F(ShardTest, AsksTheFirstWorkerForInitialParametersAndReportsReady) {
  const Layout layout({{"small", 4, TensorKind::kTrained}});
  plan_ =
      Plan{.workers = 2, .steps = 1, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 1)};
  shard_.on_plan(plan_);
  shard_.on_joined(kEvaluator, out_);
  shard_.on_joined(1, out_);
  shard_.on_joined(0, out_);
  int asked = 0;
  for (const Outgoing& each : out_) {
    const auto* control = std::get_if<Control>(&each.frame.payload);
    if (control && std::holds_alternative<WantInitial>(*control)) {
      ++asked;
      EXPECT_EQ(each.to, to_worker(1, Lane::kControl));
    }
  }
  EXPECT_EQ(asked, 1);

  out_.clear();
  shard_.on_lost(1, now_, out_);  // before it has sent them: another worker is asked
  ASSERT_EQ(out_.size(), 1u);
  EXPECT_EQ(out_[0].to, to_worker(0, Lane::kControl));

  push(0, kInitialStep, 0, 3.0f, 0);
  const auto ready = std::any_of(out_.begin(), out_.end(), [](const Outgoing& each) {
    const auto* control = std::get_if<Control>(&each.frame.payload);
    return each.to == to_coordinator() && control && std::holds_alternative<Ready>(*control);
  });
  EXPECT_TRUE(ready);
}

TEST_F(ShardTest, HoldsPullsUntilTheRunIsOpen) {
  start();
  out_.clear();
  ASSERT_TRUE(
      shard_.on_frame(0, {.type = FrameType::kPull, .version = 0}, nullptr, now_, out_).ok());
  EXPECT_TRUE(parameters_in_outbox().empty());
  open();
  EXPECT_EQ(parameters_in_outbox().size(), 2u);
}

TEST_F(ShardTest, AveragesBySamplesAndPublishesWhenAllHavePushed) {
  start();
  open();
  push_all(0, 0, 1.0f, 3);
  EXPECT_EQ(push(1, 0, 0, 5.0f, 1), Answer::kAccepted);
  // (3 * 1 + 1 * 5) / 4 = 2, applied with learning rate 1 to 0.
  EXPECT_FLOAT_EQ(parameter(0, 1), -2.0f);
  EXPECT_FALSE(closed_in_outbox()) << "the other block is still open";
  push(1, 0, 1, 5.0f, 1);
  EXPECT_FLOAT_EQ(parameter(1, 1), -2.0f);
}

TEST_F(ShardTest, ReportsArrivalsToTheCoordinator) {
  start();
  open();
  now_ = 30ms;
  push_all(1, 0, 1.0f);
  now_ = 70ms;
  push_all(0, 0, 1.0f, 2);
  const auto closed = closed_in_outbox();
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->step, 0u);
  EXPECT_EQ(closed->elapsed, 70ms);
  EXPECT_EQ(closed->samples, 3u);
  const std::vector<StepClosed::Arrival> expected = {{0, 70ms, 0}, {1, 30ms, 0}};
  EXPECT_EQ(closed->arrivals, expected);
}

TEST_F(ShardTest, ReportsTheNoiseOfTheGradients) {
  start();
  open();
  push_all(0, 0, 1.0f, 3);
  push_all(1, 0, 5.0f, 1);
  // Of one parameter A = (3 + 25) / 4 = 7 and B = 4, so noise = (7 - 4) 4 and signal = 4 - 12/4.
  const auto closed = closed_in_outbox();
  ASSERT_TRUE(closed);
  EXPECT_NEAR(closed->noise, 12.0 * (kLength + 4), 1e-2);
  EXPECT_NEAR(closed->signal, 1.0 * (kLength + 4), 1e-2);
}

TEST_F(ShardTest, ReportsNoNoiseIfABlockHadOneGradient) {
  start();
  open(2);
  push_all(0, 0, 1.0f);
  push(1, 0, 0, 2.0f);
  push(1, 0, 1, std::numeric_limits<float>::quiet_NaN());
  const auto closed = closed_in_outbox();
  ASSERT_TRUE(closed);
  EXPECT_TRUE(std::isnan(closed->noise));
  EXPECT_TRUE(std::isnan(closed->signal));
  decide(1, 2);
  push_all(0, 1, 1.0f);
  push_all(1, 1, 1.0f);
  EXPECT_NEAR(closed_in_outbox()->noise, 0.0, 1e-3) << "each step is measured separately";
}

TEST_F(ShardTest, BlocksThatAreAveragedHaveNoNoise) {
  const Layout layout({{"w", 4, TensorKind::kTrained}, {"mean", 4, TensorKind::kAveraged}});
  plan_ = Plan{.workers = 2,
               .steps = 2,
               .learning = {.schedule = {.base = 1.0}},
               .tensors = layout.tensors(),
               .blocks = plan_blocks(layout, 1)};
  shard_.on_plan(plan_);
  for (const WorkerId worker : {0u, 1u}) shard_.on_joined(worker, out_);
  send_initial(0);
  open();
  for (const Block& block : plan_.blocks.blocks) {
    const float spread = block.kind == TensorKind::kTrained ? 1.0f : 100.0f;
    push(0, 0, block.id, spread);
    push(1, 0, block.id, -spread);
  }
  EXPECT_NEAR(closed_in_outbox()->noise, 2.0 * 4, 1e-5);
}

// One block of one float that starts at 0, learning rate 1, T = 8. After pushes of gradient 1 its
// value is minus the rate that was used.
class ShardRateRuleTest : public ShardTest {
 protected:
  void start_with(RateRule rule) {
    const Layout layout({{"w", 1, TensorKind::kTrained}});
    plan_ = Plan{.workers = 2,
                 .steps = 10,
                 .learning = {.schedule = {.base = 1.0, .rule = rule}},
                 .full_samples = 8,
                 .tensors = layout.tensors(),
                 .blocks = plan_blocks(layout, 1)};
    shard_.on_plan(plan_);
    for (const WorkerId worker : {0u, 1u}) shard_.on_joined(worker, out_);
    send_initial(0);
  }
  void decide_with(Step step, double noise_scale) {
    shard_.on_decision({.step = step, .cutoff = 1, .alive = {0, 1}, .noise_scale = noise_scale},
                       now_, out_);
  }
};

TEST_F(ShardRateRuleTest, NoneUsesTheRateOfTheSchedule) {
  start_with(RateRule::kNone);
  decide_with(0, 4.0);
  push(0, 0, 0, 1.0f, 2);
  EXPECT_EQ(parameter(0, 1), -1.0f);
}

TEST_F(ShardRateRuleTest, LinearUsesTheShareOfTheSamples) {
  start_with(RateRule::kLinear);
  decide_with(0, 0.0);
  push(0, 0, 0, 1.0f, 2);
  EXPECT_FLOAT_EQ(parameter(0, 1), -0.25f);
}

TEST_F(ShardRateRuleTest, SqrtUsesItsRoot) {
  start_with(RateRule::kSqrt);
  decide_with(0, 0.0);
  push(0, 0, 0, 1.0f, 2);
  EXPECT_FLOAT_EQ(parameter(0, 1), -0.5f);
}

TEST_F(ShardRateRuleTest, AdaScaleUsesTheNoiseScaleOfTheNewestDecision) {
  start_with(RateRule::kAdaScale);
  decide_with(0, 0.0);
  push(0, 0, 0, 1.0f, 2);
  EXPECT_EQ(parameter(0, 1), -1.0f) << "the noise scale is not known yet";
  decide_with(1, 4.0);
  push(0, 1, 0, 1.0f, 2);
  // 2/8 * (4 + 8) / (4 + 2) = 1/2.
  EXPECT_FLOAT_EQ(parameter(0, 2), -1.5f);
}

TEST_F(ShardRateRuleTest, AFullStepHasTheRateOfTheSchedule) {
  start_with(RateRule::kLinear);
  shard_.on_decision({.step = 0, .cutoff = 2, .alive = {0, 1}}, now_, out_);
  push(0, 0, 0, 1.0f, 6);
  push(1, 0, 0, 1.0f, 2);
  EXPECT_EQ(parameter(0, 1), -1.0f);
}

TEST_F(ShardTest, ClosesAtTheCutoffAndAnswersLaterPushesAsLate) {
  start(3);
  open(2);
  now_ = 10ms;
  push_all(0, 0, 1.0f);
  push_all(1, 0, 1.0f);
  ASSERT_TRUE(closed_in_outbox());
  EXPECT_EQ(closed_in_outbox()->arrivals.size(), 2u);
  now_ = 50ms;
  EXPECT_EQ(push(2, 0, 0, 1.0f), Answer::kLate);
  EXPECT_EQ(out_[0].frame.header.version, 1u) << "the answer has the block's current step";
  decide(1, 2);
  push_all(0, 1, 0.0f);
  push_all(1, 1, 0.0f);
  ASSERT_TRUE(closed_in_outbox());
  EXPECT_TRUE(closed_in_outbox()->late.empty()) << "half a gradient has not arrived";
  EXPECT_EQ(push(2, 0, 1, 1.0f), Answer::kLate);
  EXPECT_FLOAT_EQ(parameter(0, 1), -1.0f) << "a late gradient changes nothing";

  // Its run-time is reported with the next step.
  decide(2, 2);
  push_all(0, 2, 0.0f);
  push_all(1, 2, 0.0f);
  const auto closed = closed_in_outbox();
  ASSERT_TRUE(closed);
  const std::vector<StepClosed::Arrival> expected = {{2, 50ms, 0}};
  EXPECT_EQ(closed->late, expected);
}

TEST_F(ShardTest, ReportsTheRunTimeOfAGradientThatWasLateForOneBlock) {
  start(2);
  open(1);
  now_ = 10ms;
  push(0, 0, 0, 1.0f);  // closes the first block
  now_ = 20ms;
  EXPECT_EQ(push(1, 0, 0, 1.0f), Answer::kLate);
  EXPECT_EQ(push(1, 0, 1, 1.0f), Answer::kAccepted);  // closes the second
  const std::vector<StepClosed::Arrival> expected = {{1, 20ms, 0}};
  ASSERT_TRUE(closed_in_outbox());
  EXPECT_TRUE(closed_in_outbox()->arrivals.empty());
  EXPECT_EQ(closed_in_outbox()->late, expected);
}

TEST_F(ShardTest, ReportsTheRunTimeOfAWorkerThatPushedBeforeItWasAMember) {
  start(2);
  open(2);
  shard_.on_lost(1, now_, out_);
  shard_.on_joined(1, out_);
  now_ = 10ms;
  push_all(1, 0, 1.0f);  // no decision includes it yet: all blocks are late
  now_ = 20ms;
  decide(0, 2);
  const FrameHeader pull{.type = FrameType::kPull, .version = 1, .worker = 1};
  ASSERT_TRUE(shard_.on_frame(1, pull, nullptr, now_, out_).ok());
  now_ = 90ms;
  push_all(0, 0, 1.0f);
  const std::vector<StepClosed::Arrival> expected = {{1, 10ms, 0}};
  ASSERT_TRUE(closed_in_outbox());
  EXPECT_EQ(closed_in_outbox()->late, expected);
}

TEST_F(ShardTest, AnOfferQueuedWhenItsBlockClosesIsAnsweredLate) {
  // A window of one byte: one block at a time, so the second offer waits.
  Shard narrow(0, 1);
  const Layout layout({{"large", kLength, TensorKind::kTrained}});
  const Plan plan{.workers = 2,
                  .steps = 5,
                  .learning = {.schedule = {.base = 1.0}},
                  .tensors = layout.tensors(),
                  .blocks = plan_blocks(layout, 1)};
  narrow.on_plan(plan);
  Outbox out;
  narrow.on_joined(0, out);
  narrow.on_joined(1, out);
  const uint32_t bytes = kLength * sizeof(float);
  FrameHeader offer{
      .type = FrameType::kOffer, .step = kInitialStep, .worker = 0, .block = 0, .samples = 1};
  FrameHeader block{.type = FrameType::kBlock,
                    .step = kInitialStep,
                    .worker = 0,
                    .block = 0,
                    .samples = 1,
                    .length = bytes};
  ASSERT_TRUE(narrow.on_frame(0, offer, nullptr, now_, out).ok());
  ASSERT_TRUE(narrow.on_frame(0, block, narrow.pool().take(kLength), now_, out).ok());
  narrow.on_decision({.step = 0, .cutoff = 1, .alive = {0, 1}}, now_, out);
  offer.step = block.step = 0;
  ASSERT_TRUE(narrow.on_frame(0, offer, nullptr, now_, out).ok());
  out.clear();
  ASSERT_TRUE(narrow.on_frame(1, offer, nullptr, now_, out).ok());
  EXPECT_TRUE(out.empty()) << "it waits for the first offer";
  ASSERT_TRUE(narrow.on_frame(0, block, filled(kLength, 1.0f), now_, out).ok());
  const bool late = std::any_of(out.begin(), out.end(), [](const Outgoing& each) {
    return each.to == to_worker(1, Lane::kControl) &&
           each.frame.header.type == FrameType::kAnswer &&
           each.frame.header.answer == Answer::kLate;
  });
  EXPECT_TRUE(late);
}

TEST_F(ShardTest, ContinuesWithoutALostWorker) {
  start();
  open();
  push_all(0, 0, 1.0f);
  push(1, 0, 1, 3.0f);  // dies after one of its two blocks
  out_.clear();
  shard_.on_lost(1, now_, out_);
  const auto closed = closed_in_outbox();
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->arrivals.size(), 1u);
  EXPECT_FLOAT_EQ(parameter(0, 1), -1.0f) << "only worker 0's gradient";
  EXPECT_FLOAT_EQ(parameter(1, 1), -2.0f) << "its first block counts: denominators are per block";
}

TEST_F(ShardTest, ClosesNothingWithoutMembers) {
  start();
  open();
  push_all(0, 0, 1.0f);
  out_.clear();
  shard_.on_lost(0, now_, out_);
  shard_.on_lost(1, now_, out_);
  shard_.on_decision({.step = 0, .cutoff = 2, .alive = {}}, now_, out_);
  EXPECT_FALSE(closed_in_outbox());
}

TEST_F(ShardTest, RefusesNanAndInfinity) {
  start();
  open();
  Step step = 0;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    SCOPED_TRACE(bad);
    push_all(0, step, 1.0f);
    EXPECT_EQ(push(1, step, 0, bad), Answer::kNotFinite);
    push(1, step, 1, 1.0f);
    const auto closed = closed_in_outbox();
    ASSERT_TRUE(closed) << "the step does not wait for a refused push";
    ASSERT_EQ(closed->refused.size(), 1u);
    EXPECT_EQ(closed->refused[0], (StepClosed::Refused{1, 0}));
    ++step;
    EXPECT_FLOAT_EQ(parameter(0, step), -static_cast<float>(step))
        << "only the finite gradient counts";
  }
}

TEST_F(ShardTest, CountsAWorkerOnce) {
  start();
  open();
  EXPECT_EQ(push(0, 0, 1, 1.0f), Answer::kAccepted);
  EXPECT_EQ(push(0, 0, 1, 1.0f), Answer::kDuplicate);
}

TEST_F(ShardTest, NamesProtocolViolations) {
  start();
  open();
  const auto refuses = [&](FrameHeader header, const auto& matcher) {
    const auto verdict = shard_.payload_floats(0, header);
    ASSERT_FALSE(verdict.ok());
    EXPECT_EQ(verdict.error().kind, ErrorKind::kInvalidInput);
    EXPECT_THAT(verdict.error().message, AllOf(mentions("worker 0"), matcher));
  };
  refuses({.type = FrameType::kBlock, .step = 0, .block = 99, .samples = 1, .length = 16},
          mentions(99));
  refuses({.type = FrameType::kBlock, .step = 0, .block = 1, .samples = 1, .length = 20},
          mentions(20, 1, 16));
  refuses({.type = FrameType::kBlock, .step = 7, .block = 1, .samples = 1, .length = 16},
          mentions(7));
  refuses({.type = FrameType::kBlock, .step = 0, .block = 1, .samples = 0, .length = 16},
          AllOf(Not(mentions(1)), Not(mentions(16))));
  refuses({.type = FrameType::kParameters, .block = 1},
          mentions(static_cast<int>(FrameType::kParameters)));
  const FrameHeader unasked{
      .type = FrameType::kBlock, .step = 0, .worker = 0, .block = 1, .samples = 1, .length = 16};
  EXPECT_FALSE(shard_.on_frame(0, unasked, filled(4, 1.0f), now_, out_).ok())
      << "it was never granted";
}

TEST_F(ShardTest, AnOfferThatIsRepeatedIsADuplicate) {
  start();
  open();
  const FrameHeader offer{
      .type = FrameType::kOffer, .step = 0, .worker = 0, .block = 0, .samples = 1};
  ASSERT_TRUE(shard_.on_frame(0, offer, nullptr, now_, out_).ok());
  const size_t before = shard_.pending();
  for (int again = 0; again < 3; ++again) {
    out_.clear();
    ASSERT_TRUE(shard_.on_frame(0, offer, nullptr, now_, out_).ok());
    EXPECT_EQ(find_answer(0), Answer::kDuplicate);
    EXPECT_EQ(shard_.pending(), before) << "nothing is kept for a duplicate";
  }
}

TEST_F(ShardTest, LimitsOpenOffersOfAWorker) {
  start(2, 200);
  open(1);
  const auto offer = [&](Step step) {
    out_.clear();
    return shard_.on_frame(
        0, {.type = FrameType::kOffer, .step = step, .worker = 0, .block = 0, .samples = 1},
        nullptr, now_, out_);
  };
  for (Step step = 0; step < kOffersOpenMax; ++step) {
    ASSERT_TRUE(offer(step).ok()) << step;
    push_all(1, step, 1.0f);
    decide(step + 1, 1);
  }
  const Status taken = offer(kOffersOpenMax);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().kind, ErrorKind::kInvalidInput);
  shard_.on_lost(0, now_, out_);
  shard_.on_joined(0, out_);
  EXPECT_TRUE(offer(kOffersOpenMax).ok()) << "its next incarnation has no open offers";
}

TEST_F(ShardTest, RefusesADecisionBeforeItHasItsParameters) {
  // Otherwise pushes would close a block that has no parameters.
  const Layout layout({{"only", 4, TensorKind::kTrained}});
  shard_.on_plan(
      {.workers = 1, .steps = 2, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 1)});
  shard_.on_joined(0, out_);
  EXPECT_FALSE(shard_.check_decision({.step = 0, .cutoff = 1, .alive = {0}}).ok());
}

TEST_F(ShardTest, RefusesDecisionsThatNoCoordinatorMakes) {
  start(2, 10);
  const std::vector<WorkerId> both = {0, 1};
  EXPECT_TRUE(shard_.check_decision({.step = 0, .cutoff = 2, .alive = both}).ok());
  EXPECT_FALSE(shard_.check_decision({.step = 1, .cutoff = 2, .alive = both}).ok())
      << "step 0 has not closed";
  EXPECT_FALSE(shard_.check_decision({.step = 10, .cutoff = 2, .alive = both}).ok());
  EXPECT_FALSE(shard_.check_decision({.step = ~Step{0}, .cutoff = 2, .alive = both}).ok());
  EXPECT_FALSE(shard_.check_decision({.step = 0, .cutoff = 0, .alive = both}).ok());
  open(1);
  push_all(0, 0, 1.0f);
  EXPECT_TRUE(shard_.check_decision({.step = 1, .cutoff = 2, .alive = both}).ok());
  EXPECT_TRUE(shard_.check_decision({.step = 0, .cutoff = 2, .alive = both}).ok())
      << "a late decision is not a violation";
}

TEST_F(ShardTest, AWithdrawnBlockFreesItsGrant) {
  start(3);
  open(2);
  FrameHeader offer{.type = FrameType::kOffer, .step = 0, .worker = 2, .block = 0, .samples = 1};
  ASSERT_TRUE(shard_.on_frame(2, offer, nullptr, now_, out_).ok());
  push_all(0, 0, 1.0f);
  push_all(1, 0, 1.0f);
  offer.type = FrameType::kBlock;  // with no bytes: the worker has continued
  out_.clear();
  ASSERT_TRUE(shard_.on_frame(2, offer, nullptr, now_, out_).ok());
  EXPECT_EQ(find_answer(2), Answer::kLate);
}

TEST_F(ShardTest, AnswersALatePullWithTheNewestVersion) {
  start(1);
  open(1);
  for (Step step = 0; step < 5; ++step) {
    push_all(0, step, 1.0f);
    decide(step + 1, 1);
  }
  out_.clear();
  ASSERT_TRUE(
      shard_.on_frame(0, {.type = FrameType::kPull, .version = 2}, nullptr, now_, out_).ok());
  for (const Outgoing& each : parameters_in_outbox()) EXPECT_EQ(each.frame.header.version, 5u);
}

TEST_F(ShardTest, KeepsTheLastTwoSnapshotsForTheEvaluator) {
  start(1, 10, 2);
  open(1);
  for (Step step = 0; step < 6; ++step) {
    push_all(0, step, 1.0f);
    decide(step + 1, 1);
  }
  EXPECT_FLOAT_EQ(parameter(1, 6, true), -6.0f);
  EXPECT_FLOAT_EQ(parameter(1, 4, true), -4.0f);
  EXPECT_TRUE(std::isnan(parameter(1, 2, true)));
  ASSERT_FALSE(out_.empty());
  EXPECT_EQ(out_[0].frame.header.type, FrameType::kGone);
  EXPECT_EQ(out_[0].frame.header.version, 6u);
}

TEST_F(ShardTest, EndsAfterTheLastStepWithADigestOfItsParameters) {
  start(1, 2);
  open(1);
  push_all(0, 0, 1.0f);
  EXPECT_EQ(closed_in_outbox()->digest, 0u);
  decide(1, 1);
  push_all(0, 1, 1.0f);
  EXPECT_NE(closed_in_outbox()->digest, 0u);
  EXPECT_TRUE(shard_.finished());
  EXPECT_EQ(push(0, 1, 0, 1.0f), Answer::kLate);
  EXPECT_FLOAT_EQ(parameter(1, 2, true), -2.0f) << "the final parameters can be evaluated";
}

TEST_F(ShardTest, WithoutBlocksHasNothingToClose) {
  const Layout layout({{"only", 4, TensorKind::kTrained}});
  Shard empty(1);
  empty.on_plan(Plan{
      .workers = 1, .steps = 2, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 2)});
  empty.on_joined(0, out_);
  out_.clear();
  empty.on_decision({.step = 0, .cutoff = 1, .alive = {0}}, now_, out_);
  EXPECT_TRUE(empty.check_decision({.step = 1, .cutoff = 1, .alive = {0}}).ok())
      << "other shards have closed a step";
  EXPECT_FALSE(closed_in_outbox());
}

TEST_F(ShardTest, GradientsOfLostWorkersDoNotCountTowardsTheCutoff) {
  start(3);
  open(3);
  push_all(2, 0, 1.0f);
  out_.clear();
  shard_.on_lost(2, now_, out_);
  shard_.on_decision({.step = 0, .cutoff = 2, .alive = {0, 1}}, now_, out_);
  push_all(0, 0, 1.0f);
  EXPECT_FALSE(closed_in_outbox()) << "worker 1 is a member and waited for";
  push_all(1, 0, 1.0f);
  ASSERT_TRUE(closed_in_outbox());
  EXPECT_EQ(closed_in_outbox()->samples, 3u) << "the delivered gradients are used";
}

TEST_F(ShardTest, DoesNotWaitForAWorkerThatPullsALaterVersion) {
  start(3);
  open(3);
  const auto pull = [&](WorkerId worker, Version version) {
    const FrameHeader header{.type = FrameType::kPull, .version = version, .worker = worker};
    ASSERT_TRUE(shard_.on_frame(worker, header, nullptr, now_, out_).ok());
  };
  push_all(0, 0, 1.0f);
  out_.clear();
  pull(1, 2);  // another shard is at version 2: worker 1 pushes nothing more for steps 0 and 1
  EXPECT_FALSE(closed_in_outbox()) << "worker 2 is waited for";
  push_all(2, 0, 1.0f);
  ASSERT_TRUE(closed_in_outbox());
  EXPECT_EQ(closed_in_outbox()->arrivals.size(), 2u);
  push_all(0, 1, 1.0f);
  push_all(2, 1, 1.0f);
  ASSERT_TRUE(closed_in_outbox());
  push_all(0, 2, 1.0f);
  push_all(2, 2, 1.0f);
  EXPECT_FALSE(closed_in_outbox()) << "it takes part again";
  push_all(1, 2, 1.0f);
  EXPECT_TRUE(closed_in_outbox());
}

TEST_F(ShardTest, WaitsForAnOfferMadeBeforeThePullOfTheNextVersion) {
  start(2);
  open(2);
  const FrameHeader offer{
      .type = FrameType::kOffer, .step = 0, .worker = 1, .block = 0, .samples = 1};
  ASSERT_TRUE(shard_.on_frame(1, offer, nullptr, now_, out_).ok());
  push(1, 0, 1, 1.0f);
  const FrameHeader pull{.type = FrameType::kPull, .version = 1, .worker = 1};
  ASSERT_TRUE(shard_.on_frame(1, pull, nullptr, now_, out_).ok());
  push_all(0, 0, 1.0f);
  EXPECT_FALSE(closed_in_outbox()) << "its bytes are on their way";
}

TEST_F(ShardTest, AReturningWorkerTakesPartOnceADecisionIncludesIt) {
  start(2);
  open(2);
  EXPECT_EQ(push(1, 0, 0, 1.0f), Answer::kAccepted);
  out_.clear();
  shard_.on_lost(1, now_, out_);
  shard_.on_joined(1, out_);
  EXPECT_EQ(push(1, 0, 0, 1.0f), Answer::kDuplicate) << "its earlier incarnation has pushed that";
  EXPECT_EQ(push(1, 0, 1, 1.0f), Answer::kLate) << "it is not a member yet";
  push_all(0, 0, 1.0f);
  ASSERT_TRUE(closed_in_outbox()) << "the step does not wait for it";
  EXPECT_EQ(closed_in_outbox()->arrivals.size(), 1u);
  EXPECT_EQ(parameter(0, 1), -1.0f);
  decide(1, 2);
  push_all(0, 1, 1.0f);
  EXPECT_FALSE(closed_in_outbox()) << "now the step waits for it";
  push_all(1, 1, 1.0f);
  EXPECT_TRUE(closed_in_outbox());
}

TEST_F(ShardTest, ADecisionDoesNotIncludeAWorkerWithoutAConnection) {
  start(2);
  open(2);
  shard_.on_lost(1, now_, out_);
  decide(0, 2);
  push_all(0, 0, 1.0f);
  EXPECT_TRUE(closed_in_outbox());
}

TEST_F(ShardTest, AcceptsInitialParametersOnlyFromTheWorkerThatItAsked) {
  const Layout layout({{"small", 4, TensorKind::kTrained}});
  plan_ =
      Plan{.workers = 2, .steps = 1, .tensors = layout.tensors(), .blocks = plan_blocks(layout, 1)};
  shard_.on_plan(plan_);
  shard_.on_joined(7, out_);  // not of this run
  shard_.on_joined(1, out_);
  const FrameHeader header{
      .type = FrameType::kOffer, .step = kInitialStep, .block = 0, .length = 16};
  EXPECT_FALSE(shard_.on_frame(0, header, filled(4, 1.0f), now_, out_).ok());
  EXPECT_FALSE(
      shard_.on_frame(1, header, filled(4, std::numeric_limits<float>::quiet_NaN()), now_, out_)
          .ok());
  EXPECT_TRUE(shard_.on_frame(1, header, filled(4, 1.0f), now_, out_).ok());
}

TEST_F(ShardTest, OnlyAWorkerCanBeDone) {
  start();
  open();
  const FrameHeader done{.type = FrameType::kDone, .version = 1};
  EXPECT_TRUE(shard_.on_frame(kEvaluator, done, nullptr, now_, out_).ok());
  push_all(0, 0, 1.0f);
  EXPECT_FALSE(closed_in_outbox());
  push_all(1, 0, 1.0f);
  EXPECT_TRUE(closed_in_outbox()) << "the step waits for both";
}

}  // namespace
}  // namespace drover

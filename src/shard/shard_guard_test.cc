// A shard with a guard: outliers are clipped or refused, and reported, and steps do not wait for
// another gradient of theirs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "shard/shard.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kLength = 16;  // travels with its offer

class ShardGuardTest : public ::testing::Test {
 protected:
  // One block, plain SGD with learning rate 1.
  void start(GuardRule rule, uint32_t workers = 4, bool asynchronous = false,
             bool deterministic = false) {
    const Layout layout({{"one", kLength, TensorKind::kTrained}});
    plan_ =
        Plan{.workers = workers,
             .steps = 100,
             .learning = {.schedule = {.base = 1.0}, .deterministic = deterministic, .guard = rule},
             .asynchronous = asynchronous,
             .checkpoint_every = 10,
             .tensors = layout.tensors(),
             .blocks = plan_blocks(layout, 1)};
    shard_->on_plan(plan_);
    for (WorkerId worker = 0; worker < workers; ++worker) shard_->on_joined(worker, out_);
    push(0, kInitialStep, 0.0F, 0);
    decide(0, workers);
  }
  void decide(Step step, uint32_t cutoff) {
    Decision decision{.step = step, .cutoff = cutoff, .alive = {}};
    for (WorkerId worker = 0; worker < plan_.workers; ++worker) decision.alive.push_back(worker);
    shard_->on_decision(decision, now_, out_);
  }
  Answer push(WorkerId worker, Step step, float value, uint32_t samples = 1) {
    return push(worker, step, filled(value), samples);
  }
  Answer push(WorkerId worker, Step step, ConstBuffer gradient, uint32_t samples = 1) {
    const FrameHeader header{.type = FrameType::kOffer,
                             .step = step,
                             .worker = worker,
                             .block = 0,
                             .samples = samples,
                             .length = kLength * static_cast<uint32_t>(sizeof(float))};
    out_.clear();
    EXPECT_TRUE(shard_->on_frame(worker, header, std::move(gradient), now_, out_).ok());
    for (const Outgoing& each : out_) {
      if (each.frame.header.type == FrameType::kAnswer) return each.frame.header.answer;
    }
    ADD_FAILURE() << "no answer";
    return Answer::kLate;
  }
  SharedBuffer filled(float value) {
    SharedBuffer buffer = shard_->pool().take(kLength);
    std::fill(buffer->span().begin(), buffer->span().end(), value);
    return buffer;
  }
  std::optional<StepClosed> closed() const {
    for (const Outgoing& each : out_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control == nullptr) continue;
      if (const auto* closed = std::get_if<StepClosed>(control)) return *closed;
    }
    return std::nullopt;
  }
  // Steps in which all workers send ones.
  Step be_honest(Step from, Step steps) {
    for (Step step = from; step < from + steps; ++step) {
      decide(step, plan_.workers);
      for (WorkerId worker = 0; worker < plan_.workers; ++worker) push(worker, step, 1.0F);
    }
    decide(from + steps, plan_.workers);
    return from + steps;
  }
  float parameter(Version version) {
    out_.clear();
    const FrameHeader pull{.type = FrameType::kPull, .flags = kNotDoneFlag, .version = version};
    EXPECT_TRUE(shard_->on_frame(0, pull, nullptr, now_, out_).ok());
    for (const Outgoing& each : out_) {
      if (each.frame.header.type == FrameType::kParameters)
        return std::get<FloatSlice>(each.frame.payload).span()[0];
    }
    ADD_FAILURE() << "no parameters of version " << version;
    return 0.0F;
  }

  // Another process continues from the state that this one saved at step 10.
  void continue_elsewhere() {
    const auto part = shard_->take_checkpoint();
    ASSERT_TRUE(part);
    plan_.first_step = part->version;
    shard_.emplace(0);
    shard_->on_plan(plan_);
    shard_->restore(part->blocks);
    for (WorkerId worker = 0; worker < plan_.workers; ++worker) shard_->on_joined(worker, out_);
    decide(plan_.first_step, plan_.workers);
  }

  TimePoint now_ = 1s;
  Plan plan_;
  std::optional<Shard> shard_{0};
  Outbox out_;
};

TEST_F(ShardGuardTest, KeepsItsHistoryAcrossARestart) {
  start(GuardRule::kRefuse);
  be_honest(0, 10);
  continue_elsewhere();
  const Step step = be_honest(10, 2);
  EXPECT_EQ(push(2, step, 100.0F), Answer::kOutlier);
}

TEST_F(ShardGuardTest, ForgetsTheHistoryOfALostWorker) {
  start(GuardRule::kRefuse, 2);
  const Step step = be_honest(0, 5);
  for (const WorkerId worker : {0u, 1u}) {
    shard_->on_lost(worker, now_, out_);
    shard_->on_joined(worker, out_);
  }
  decide(step, 2);
  for (const WorkerId worker : {0u, 1u}) push(worker, step, 1.0F);
  decide(step + 1, 2);
  EXPECT_EQ(push(1, step + 1, 100.0F), Answer::kAccepted) << "no worker has a vote";
}

TEST_F(ShardGuardTest, WithoutAGuardAllFiniteGradientsAreUsed) {
  start(GuardRule::kOff);
  const Step step = be_honest(0, 5);
  for (WorkerId worker = 0; worker < 4; ++worker)
    EXPECT_EQ(push(worker, step, worker == 2 ? 101.0F : 1.0F), Answer::kAccepted);
  EXPECT_TRUE(closed()->outliers.empty());
  EXPECT_FLOAT_EQ(parameter(6), -5.0F - 104.0F / 4);
}

TEST_F(ShardGuardTest, ClipsOutliersToTheTypicalNorm) {
  start(GuardRule::kNorm);
  const Step step = be_honest(0, 5);
  for (WorkerId worker = 0; worker < 4; ++worker)
    EXPECT_EQ(push(worker, step, worker == 2 ? -100.0F : 1.0F), Answer::kAccepted);
  ASSERT_TRUE(closed());
  ASSERT_EQ(closed()->outliers.size(), 1u);
  const StepClosed::Outlier outlier = closed()->outliers[0];
  EXPECT_EQ(outlier.worker, 2u);
  EXPECT_EQ(outlier.blocks, 1u);
  EXPECT_NEAR(outlier.ratio, 100.0, 1e-3);
  EXPECT_TRUE(outlier.used);
  EXPECT_EQ(closed()->arrivals.size(), 4u);
  EXPECT_FLOAT_EQ(parameter(6), -5.0F - 2.0F / 4);
}

TEST_F(ShardGuardTest, OrRefusesThemAndClosesTheStepWithoutThem) {
  start(GuardRule::kRefuse);
  const Step step = be_honest(0, 5);
  EXPECT_EQ(push(2, step, 100.0F), Answer::kOutlier);
  EXPECT_EQ(push(2, step, 1.0F), Answer::kDuplicate) << "a refused push counts as answered";
  for (const WorkerId worker : {0u, 1u, 3u}) EXPECT_EQ(push(worker, step, 1.0F), Answer::kAccepted);
  ASSERT_TRUE(closed()) << "the cutoff is four, but only three more can arrive";
  EXPECT_FALSE(closed()->outliers.at(0).used);
  EXPECT_EQ(closed()->samples, 3u);
  EXPECT_FLOAT_EQ(parameter(6), -6.0F);
}

TEST_F(ShardGuardTest, RefusedGradientsDoNotCountTowardsTheCutoff) {
  start(GuardRule::kRefuse);
  const Step step = be_honest(0, 5);
  decide(step, 2);
  EXPECT_EQ(push(2, step, 100.0F), Answer::kOutlier);
  push(0, step, 1.0F);
  EXPECT_FALSE(closed());
  push(1, step, 1.0F);
  EXPECT_TRUE(closed());
}

TEST_F(ShardGuardTest, AStepWithOnlyRefusedGradientsClosesAndTheBoundAdapts) {
  start(GuardRule::kRefuse);
  Step step = be_honest(0, 10);
  uint32_t refused_steps = 0;
  for (bool refused = true; refused; ++step) {
    ASSERT_LT(refused_steps, 6u);
    decide(step, 4);
    for (WorkerId worker = 0; worker < 4; ++worker)
      refused = push(worker, step, 50.0F) == Answer::kOutlier;
    ASSERT_TRUE(closed());
    refused_steps += refused ? 1 : 0;
  }
  EXPECT_EQ(refused_steps, 5u) << "then most remembered norms are new";
}

TEST_F(ShardGuardTest, AWorkerThatExaggeratesItsSamplesDoesNotOutweighOthers) {
  start(GuardRule::kNorm);
  const Step step = be_honest(0, 5);
  for (WorkerId worker = 0; worker < 4; ++worker)
    push(worker, step, worker == 2 ? -1.0F : 1.0F, worker == 2 ? 1'000'000 : 1);
  ASSERT_EQ(closed()->outliers.size(), 1u);
  EXPECT_EQ(closed()->samples, 4u);
  EXPECT_FLOAT_EQ(parameter(6), -5.0F - 2.0F / 4);
}

TEST_F(ShardGuardTest, GuardsAsynchronousRuns) {
  start(GuardRule::kRefuse, 3, true);
  for (Step step = 0; step < 5; ++step) {
    for (WorkerId worker = 0; worker < 3; ++worker)
      EXPECT_EQ(push(worker, step, 1.0F), Answer::kAccepted);
  }
  EXPECT_EQ(push(1, 5, 100.0F), Answer::kOutlier);
  EXPECT_EQ(push(0, 5, 1.0F), Answer::kAccepted);
  EXPECT_EQ(push(2, 5, 1.0F), Answer::kAccepted);
  ASSERT_TRUE(closed()) << "a refused gradient counts for the round";
  EXPECT_EQ(closed()->outliers.at(0).worker, 1u);
  EXPECT_EQ(closed()->gradients, 2u);
}

// Shared memory of a worker can change at any time. The used values are those that were measured.
TEST_F(ShardGuardTest, MeasuresTheCopyOfAGradientInSharedMemory) {
  start(GuardRule::kNorm);
  const Step step = be_honest(0, 5);
  std::array<float, kLength> shared{};
  const std::atomic<uint64_t> word{7};
  const auto view = [&] {
    return std::make_shared<const FloatBuffer>(shared.data(), kLength, std::make_shared<int>(),
                                               Stamp{&word, 7});
  };
  shared.fill(100.0F);
  EXPECT_EQ(push(2, step, view()), Answer::kAccepted);
  EXPECT_EQ(push(3, step, filled(1.0F)), Answer::kAccepted);
  shared.fill(1.0F);
  EXPECT_EQ(push(0, step, view()), Answer::kAccepted);
  shared.fill(1e6F);
  EXPECT_EQ(push(1, step, filled(1.0F)), Answer::kAccepted);
  EXPECT_FLOAT_EQ(parameter(6), -6.0F) << "later writes are not used";
}

}  // namespace
}  // namespace drover

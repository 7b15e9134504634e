// What a shard does for the workers of scripts: steps in which some tensors have no gradient,
// settings of each group, values in place of gradients, gradients that wait for their norm, and a
// run whose length is announced.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "shard/shard.h"
#include "wire/limits.h"

namespace drover {
namespace {

class ScriptStepsTest : public ::testing::Test {
 protected:
  // Small blocks "a" and "b" of 4 floats, of groups 1 and 2, all zero.
  void start(uint32_t workers, Step checkpoint_every = 0) {
    workers_ = workers;
    const Layout layout(
        {{.name = "a", .size = 4, .group = 1}, {.name = "b", .size = 4, .group = 2}});
    Plan plan{.workers = workers,
              .steps = kEndless,
              .learning = {.schedule = {.base = 1.0}},
              .full_samples = workers,
              .checkpoint_every = checkpoint_every,
              .tensors = layout.tensors(),
              .blocks = plan_blocks(layout, 1)};
    ASSERT_EQ(plan.blocks.blocks.size(), 2u) << "each tensor has a block of its own";
    shard_.on_plan(plan);
    for (WorkerId worker = 0; worker < workers; ++worker) shard_.on_joined(worker, out_);
    for (const BlockId block : {0u, 1u}) ASSERT_TRUE(push(0, kInitialStep, block, 0.0f).ok());
    decide(0, workers);
  }

  void decide(Step step, uint32_t cutoff) {
    Decision decision{.step = step, .cutoff = cutoff};
    for (WorkerId worker = 0; worker < workers_; ++worker) decision.alive.push_back(worker);
    shard_.on_decision(decision, now_, out_);
  }

  Status push(WorkerId worker, Step step, BlockId block, float value, uint16_t flags = 0,
              uint32_t holds = 0) {
    const bool nothing = (flags & kNothingFlag) != 0;
    const FrameHeader header{.type = FrameType::kOffer,
                             .flags = flags,
                             .step = step,
                             .version = holds,
                             .worker = worker,
                             .block = block,
                             .samples = 1,
                             .length = nothing ? 0u : 16u};
    SharedBuffer values = shard_.pool().take(4);
    std::fill(values->span().begin(), values->span().end(), value);
    return shard_.on_frame(worker, header, nothing ? nullptr : values, now_, out_);
  }
  Status push_nothing(WorkerId worker, Step step, BlockId block) {
    return push(worker, step, block, 0.0f, kNothingFlag);
  }

  void pull(WorkerId worker, Version version) {
    const FrameHeader ask{
        .type = FrameType::kPull, .step = ++request_, .version = version, .worker = worker};
    ASSERT_TRUE(shard_.on_frame(worker, ask, nullptr, now_, out_).ok());
  }

  // The first value of a block's newest version, which has to be at least `version`.
  float value(BlockId block, Version version) {
    out_.clear();
    pull(kEvaluator, version);
    for (const Outgoing& each : out_) {
      if (each.frame.header.type == FrameType::kParameters && each.frame.header.block == block)
        return std::get<FloatSlice>(each.frame.payload).span()[0];
    }
    return std::nanf("");
  }

  template <typename Message>
  std::vector<Message> sent() const {
    std::vector<Message> found;
    for (const Outgoing& each : out_) {
      const auto* control = std::get_if<Control>(&each.frame.payload);
      if (control && std::holds_alternative<Message>(*control))
        found.push_back(std::get<Message>(*control));
    }
    return found;
  }
  Answer last_answer() const {
    for (auto each = out_.rbegin(); each != out_.rend(); ++each) {
      if (each->frame.header.type == FrameType::kAnswer) return each->frame.header.answer;
    }
    return Answer::kOutlier;
  }

  uint32_t workers_ = 0;
  uint64_t request_ = 0;
  Shard shard_{0};
  Outbox out_;
  TimePoint now_{};
};

TEST_F(ScriptStepsTest, ABlockWithoutAGradientKeepsItsVersionsValues) {
  start(2);
  for (const WorkerId worker : {0u, 1u}) {
    ASSERT_TRUE(push(worker, 0, 0, 1.0f).ok());
    ASSERT_TRUE(push_nothing(worker, 0, 1).ok());
  }
  const auto closed = sent<StepClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].arrivals.size(), 2u) << "to have no gradient is an arrival, too";
  EXPECT_EQ(closed[0].samples, 2u) << "parameters without a gradient do not count as unserved";
  EXPECT_EQ(value(0, 1), -1.0f);
  EXPECT_EQ(value(1, 1), 0.0f);
}

TEST_F(ScriptStepsTest, TheMeanIsOverTheWorkersThatHaveAGradient) {
  start(3);
  ASSERT_TRUE(push(0, 0, 0, 1.0f).ok());
  ASSERT_TRUE(push(1, 0, 0, 3.0f).ok());
  ASSERT_TRUE(push_nothing(2, 0, 0).ok());
  EXPECT_EQ(value(0, 1), -2.0f);
}

TEST_F(ScriptStepsTest, RefusesFlagsThatMakeNoSense) {
  start(2);
  EXPECT_FALSE(push(0, 0, 0, 1.0f, kHoldFlag, 0).ok()) << "it holds no block";
  EXPECT_FALSE(push(0, 0, 0, 1.0f, kHoldFlag, 3).ok()) << "there are two blocks";
  EXPECT_FALSE(push_nothing(0, kInitialStep, 0).ok());
  EXPECT_FALSE(push(0, 0, 0, 0.0f, kNothingFlag | kValuesFlag).ok());
}

TEST_F(ScriptStepsTest, EachGroupHasItsOwnSettingsInEachStep) {
  start(1);
  LearningRate rate{.from = 0, .rate = 0.5, .groups = {{.rate = 0.5}, {.rate = 0.25}}};
  rate.groups[1].optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5};
  ASSERT_TRUE(shard_.on_rate(0, rate).ok());
  for (const BlockId block : {0u, 1u}) ASSERT_TRUE(push(0, 0, block, 1.0f).ok());
  EXPECT_EQ(value(0, 1), -0.5f);
  EXPECT_EQ(value(1, 1), -0.25f);
  rate.from = 1;
  rate.groups[1].optimizer.momentum = 1.0;
  ASSERT_TRUE(shard_.on_rate(0, rate).ok());
  for (const BlockId block : {0u, 1u}) ASSERT_TRUE(push(0, 1, block, 1.0f).ok());
  EXPECT_EQ(value(0, 2), -1.0f);
  EXPECT_EQ(value(1, 2), -0.25f - 0.25f * 2.0f) << "the momentum of the step before was kept";
}

TEST_F(ScriptStepsTest, ValuesReplaceTheBlockAndThoseOfTheLowestWorkerAreUsed) {
  start(3);
  ASSERT_TRUE(push(2, 0, 0, 7.0f, kValuesFlag).ok());
  ASSERT_TRUE(push(1, 0, 0, 5.0f, kValuesFlag).ok());
  ASSERT_TRUE(push(0, 0, 0, 1.0f).ok());
  EXPECT_EQ(value(0, 1), 5.0f);
  for (WorkerId worker = 0; worker < 3; ++worker) {
    ASSERT_TRUE(push_nothing(worker, 0, 1).ok());
    ASSERT_TRUE(push(worker, 1, 0, 1.0f).ok());
  }
  EXPECT_EQ(value(0, 2), 4.0f) << "the next step is an ordinary one";
}

TEST_F(ScriptStepsTest, HeldBlocksCloseWhenAWorkerSaysHow) {
  start(2);
  for (const WorkerId worker : {0u, 1u}) {
    for (const BlockId block : {0u, 1u})
      ASSERT_TRUE(push(worker, 0, block, block == 0 ? 3.0f : -4.0f, kHoldFlag, 2).ok());
  }
  const auto norms = sent<GradientNorm>();
  ASSERT_EQ(norms.size(), 2u) << "both workers are notified";
  EXPECT_DOUBLE_EQ(norms[0].squares, 4 * 9.0 + 4 * 16.0);
  EXPECT_EQ(norms[0].largest, 4.0);
  EXPECT_TRUE(sent<StepClosed>().empty());
  shard_.on_release({.step = 7, .scale = 1.0}, now_, out_);
  EXPECT_TRUE(sent<StepClosed>().empty()) << "that was about another step";
  shard_.on_release({.step = 0, .scale = 0.5}, now_, out_);
  shard_.on_release({.step = 0, .scale = 0.1}, now_, out_);
  EXPECT_EQ(sent<StepClosed>().size(), 1u);
  EXPECT_EQ(value(0, 1), -1.5f);
  EXPECT_EQ(value(1, 1), 2.0f);
}

TEST_F(ScriptStepsTest, WhatIsHeldCanBeForgotten) {
  start(2);
  for (const WorkerId worker : {0u, 1u}) {
    ASSERT_TRUE(push(worker, 0, 0, 1.0f, kHoldFlag, 1).ok());
    ASSERT_TRUE(push_nothing(worker, 0, 1).ok());
  }
  shard_.on_release({.step = 0, .used = false}, now_, out_);
  EXPECT_EQ(value(0, 1), 0.0f);
}

TEST_F(ScriptStepsTest, AHeldBlockThatHasWhatItWaitsForTakesNoMore) {
  start(3);
  decide(0, 2);
  for (const WorkerId worker : {0u, 1u}) ASSERT_TRUE(push(worker, 0, 0, 1.0f, kHoldFlag, 1).ok());
  EXPECT_EQ(sent<GradientNorm>().size(), 3u);
  ASSERT_TRUE(push(2, 0, 0, 9.0f, kHoldFlag, 1).ok());
  EXPECT_EQ(last_answer(), Answer::kLate);
  shard_.on_release({.step = 0, .scale = 1.0}, now_, out_);
  EXPECT_EQ(value(0, 1), -1.0f);
}

TEST_F(ScriptStepsTest, WorkersThatHoldDifferentNumbersOfBlocksAreRefused) {
  start(2);
  ASSERT_TRUE(push(0, 0, 0, 1.0f, kHoldFlag, 1).ok());
  EXPECT_FALSE(push(1, 0, 0, 1.0f, kHoldFlag, 2).ok());
}

TEST_F(ScriptStepsTest, ALostWorkerThatDidNotSayHowIsNotWaitedFor) {
  start(3);
  decide(0, 2);
  for (const WorkerId worker : {0u, 1u}) {
    ASSERT_TRUE(push(worker, 0, 0, 1.0f, kHoldFlag, 1).ok());
    ASSERT_TRUE(push_nothing(worker, 0, 1).ok());
  }
  pull(2, 1);  // it was late, and is done with the step
  shard_.on_lost(0, now_, out_);
  EXPECT_TRUE(sent<StepClosed>().empty()) << "worker 1 may still say it";
  shard_.on_lost(1, now_, out_);
  EXPECT_EQ(sent<StepClosed>().size(), 1u);
  EXPECT_EQ(value(0, 1), 0.0f) << "the gradient is not used unclipped";
}

TEST_F(ScriptStepsTest, OnlyTheFirstWorkerGivesTheInitialValues) {
  const Layout layout({{.name = "a", .size = 4, .group = 1}});
  shard_.on_plan({.workers = 2,
                  .steps = kEndless,
                  .tensors = layout.tensors(),
                  .blocks = plan_blocks(layout, 1)});
  shard_.on_joined(1, out_);
  EXPECT_TRUE(sent<WantInitial>().empty());
  shard_.on_joined(0, out_);
  ASSERT_EQ(sent<WantInitial>().size(), 1u);
  EXPECT_FALSE(push(1, kInitialStep, 0, 5.0f).ok());
  EXPECT_TRUE(push(0, kInitialStep, 0, 2.0f).ok());
}

TEST_F(ScriptStepsTest, ALengthThatIsReachedMakesTheLastVersionACheckpoint) {
  start(1, 100);
  for (const BlockId block : {0u, 1u}) ASSERT_TRUE(push(0, 0, block, 1.0f).ok());
  EXPECT_FALSE(shard_.take_checkpoint());
  EXPECT_FALSE(shard_.on_length(0).ok());
  ASSERT_TRUE(shard_.on_length(1).ok());
  const auto part = shard_.take_checkpoint();
  ASSERT_TRUE(part);
  EXPECT_EQ(part->version, 1u);
  EXPECT_EQ(part->blocks.size(), 2u);
  EXPECT_TRUE(shard_.finished());
}

TEST_F(ScriptStepsTest, ALengthThatIsAheadEndsTheRunThere) {
  start(1, 100);
  ASSERT_TRUE(shard_.on_length(2).ok());
  for (const Step step : {0u, 1u}) {
    EXPECT_FALSE(shard_.finished());
    for (const BlockId block : {0u, 1u}) ASSERT_TRUE(push(0, step, block, 1.0f).ok());
  }
  EXPECT_TRUE(shard_.finished());
  EXPECT_TRUE(shard_.take_checkpoint()) << "the last version is due";
  EXPECT_FALSE(shard_.on_length(1).ok()) << "more steps are done";
}

}  // namespace
}  // namespace drover

#include "coordinator/recovery.h"

#include <gtest/gtest.h>

#include "coordinator/fixed_policy.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

const std::vector<TensorSpec> kTensors = {{"w", 64}, {"b", 32}};

CoordinatorSettings settings(std::optional<ResumeFrom> resume = {}) {
  return {.workers = 1,
          .shards = 1,
          .steps = 5,
          .resume = std::move(resume),
          .recovers = true,
          .standby = true,
          .incarnation = 7};
}

ResumeFrom from_memory() {
  return {.step = 3, .tensors = kTensors, .kept = KeptVersion{3, 6}, .keepers = {0}};
}

TEST(RestartPointOf, IsTheNewestCheckpointIfThereIsOne) {
  CoordinatorSettings none;
  EXPECT_EQ(restart_point(none, false), RestartPoint::kBeginning);
  EXPECT_EQ(restart_point(none, true), RestartPoint::kCheckpoint);
  none.resume = ResumeFrom{.step = 3, .folder = "step-3"};
  EXPECT_EQ(restart_point(none, false), RestartPoint::kCheckpoint) << "it continues from one";
}

TEST(RestartPointOf, IsUncertainIfNoCheckpointIsKnown) {
  CoordinatorSettings checkpoints{.checkpoint_dir = "checkpoints"};
  EXPECT_EQ(restart_point(checkpoints, false), RestartPoint::kBeginningNoneYet);
  checkpoints.resume = from_memory();
  EXPECT_EQ(restart_point(checkpoints, false), RestartPoint::kCheckpointIfAny)
      << "an earlier incarnation may have kept one";
}

class ResumeFromMemoryTest : public ::testing::Test {
 protected:
  // Runs the steps of the only worker until `step` is open.
  void run_until(Step step, const CoordinatorSettings& settings) {
    notes_.first = settings.resume ? settings.resume->step : 0;
    clock_.emplace(settings, std::make_unique<FixedPolicy>(&notes_), blocks_, RunClock{});
    for (Step next = clock_->step(); next < step; ++next) {
      clock_->open(Membership(1), 0.1, 1s);
      clock_->take({.shard = 0,
                    .closed = {.step = next,
                               .elapsed = 1ms,
                               .arrivals = {{0, 1ms, next}},
                               .signal = 1.0,
                               .noise = 5.0},
                    .received = 2s});
      clock_->close(Membership(1), 2s);
    }
  }

  const ModelAgreement model_{{}, false, {}};
  const BlockMap blocks_{Layout(kTensors), 1, kBlockFloats};
  PolicyNotes notes_;
  std::optional<StepClock> clock_;
};

TEST_F(ResumeFromMemoryTest, NothingIsKeptWithoutStandbys) {
  CoordinatorSettings none = settings();
  none.standby = false;
  run_until(2, none);
  EXPECT_FALSE(resume_from_memory(none, model_, &blocks_, &*clock_));
}

TEST_F(ResumeFromMemoryTest, ContinuesWithTheOpenStep) {
  run_until(2, settings());
  const auto from = resume_from_memory(settings(), model_, &blocks_, &*clock_);
  ASSERT_TRUE(from);
  EXPECT_EQ(from->step, 2u);
  EXPECT_EQ(from->kept, (KeptVersion{2, 7}));
  EXPECT_EQ(from->keepers, std::set<ShardId>{0});
  EXPECT_EQ(from->tensors, kTensors);
  EXPECT_EQ(from->settings, model_.settings());
  EXPECT_EQ(from->noise, clock_->noise());
  EXPECT_EQ(from->noise.steps, 2u);
}

TEST_F(ResumeFromMemoryTest, RepeatsTheLastStepWithTheNoiseBeforeIt) {
  run_until(5, settings());
  const auto from = resume_from_memory(settings(), model_, &blocks_, &*clock_);
  ASSERT_TRUE(from);
  EXPECT_EQ(from->step, 4u);
  EXPECT_EQ(from->noise.steps, 4u);
}

TEST_F(ResumeFromMemoryTest, NothingIsKeptBeforeTheFirstStepHasClosed) {
  EXPECT_FALSE(resume_from_memory(settings(), model_, nullptr, nullptr));
  run_until(0, settings());
  EXPECT_FALSE(resume_from_memory(settings(), model_, &blocks_, &*clock_));
}

TEST_F(ResumeFromMemoryTest, TheStateOfTheEarlierIncarnationIsStillThere) {
  const CoordinatorSettings again = settings(from_memory());
  const auto before = resume_from_memory(again, model_, nullptr, nullptr);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->kept, (KeptVersion{3, 6}));
  run_until(3, again);
  EXPECT_EQ(resume_from_memory(again, model_, &blocks_, &*clock_)->kept, (KeptVersion{3, 6}));
  run_until(4, again);
  EXPECT_EQ(resume_from_memory(again, model_, &blocks_, &*clock_)->kept, (KeptVersion{4, 7}));
}

TEST_F(ResumeFromMemoryTest, ACheckpointIsNotInMemory) {
  const CoordinatorSettings read =
      settings(ResumeFrom{.step = 3, .folder = "step-3", .tensors = kTensors});
  EXPECT_FALSE(resume_from_memory(read, model_, nullptr, nullptr));
  run_until(3, read);
  EXPECT_FALSE(resume_from_memory(read, model_, &blocks_, &*clock_));
}

}  // namespace
}  // namespace drover

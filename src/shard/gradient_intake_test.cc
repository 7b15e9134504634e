// Which gradients are used for an update, unchanged or clipped.
#include "shard/gradient_intake.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace drover {
namespace {

constexpr uint32_t kLength = 16;

class GradientIntakeTest : public ::testing::Test {
 protected:
  static Answer add(GradientIntake& intake, WorkerId worker, float value, uint32_t samples = 1) {
    auto gradient = std::make_shared<FloatBuffer>(kLength);
    std::fill(gradient->span().begin(), gradient->span().end(), value);
    return intake.add(worker, samples, std::move(gradient));
  }
  static GradientIntake make(GuardRule rule, BufferPool* pool) {
    const Plan plan{.workers = 4, .learning = {.guard = rule}};
    return {{.id = 0, .offset = 0, .length = kLength, .kind = TensorKind::kTrained}, plan, pool};
  }
  // Runs some steps with gradients of equal norms.
  static void learn_typical_norm(GradientIntake& intake) {
    const Membership members(4);
    for (int step = 0; step < 5; ++step) {
      for (WorkerId worker = 0; worker < 4; ++worker) add(intake, worker, 1.0F);
      intake.reset();
      intake.learn(members);
    }
  }
  BufferPool pool_;
};

TEST_F(GradientIntakeTest, RefusesGradientsThatAreNotFinite) {
  GradientIntake intake = make(GuardRule::kOff, &pool_);
  EXPECT_EQ(add(intake, 0, std::numeric_limits<float>::quiet_NaN()), Answer::kNotFinite);
  EXPECT_EQ(add(intake, 1, std::numeric_limits<float>::infinity()), Answer::kNotFinite);
  EXPECT_EQ(intake.sum().contributors(), 0u);
}

TEST_F(GradientIntakeTest, WithoutAGuardUsesEveryNorm) {
  GradientIntake intake = make(GuardRule::kOff, &pool_);
  learn_typical_norm(intake);
  EXPECT_EQ(add(intake, 0, 1000.0F), Answer::kAccepted);
  EXPECT_FALSE(intake.outlier_ratio());
}

TEST_F(GradientIntakeTest, ClipsOrRefusesOutliers) {
  GradientIntake clips = make(GuardRule::kNorm, &pool_);
  learn_typical_norm(clips);
  EXPECT_EQ(add(clips, 0, 1000.0F), Answer::kAccepted);
  ASSERT_TRUE(clips.outlier_ratio());
  EXPECT_NEAR(*clips.outlier_ratio(), 1000.0, 1.0);
  std::vector<float> mean(kLength);
  clips.sum().write_mean(0, mean);
  EXPECT_NEAR(mean[0], 1.0F, 1e-3F);

  GradientIntake refuses = make(GuardRule::kRefuse, &pool_);
  learn_typical_norm(refuses);
  EXPECT_EQ(add(refuses, 0, 1000.0F), Answer::kOutlier);
  EXPECT_TRUE(refuses.outlier_ratio());
  EXPECT_EQ(add(refuses, 1, 1.0F), Answer::kAccepted);
  EXPECT_FALSE(refuses.outlier_ratio()) << "the last gradient was no outlier";
  EXPECT_EQ(refuses.sum().contributors(), 1u);
}

TEST_F(GradientIntakeTest, OneGradientHasNoNoise) {
  GradientIntake intake = make(GuardRule::kOff, &pool_);
  add(intake, 0, 1.0F);
  EXPECT_TRUE(std::isnan(intake.noise(16.0).noise));
  add(intake, 1, -1.0F);
  EXPECT_DOUBLE_EQ(intake.noise(0.0).noise, 32.0) << "(A - B) M / (c - 1) with A = 16, B = 0";
  intake.reset();
  EXPECT_EQ(intake.sum().contributors(), 0u);
}

TEST_F(GradientIntakeTest, RestoresTheStateOfItsGuard) {
  GradientIntake before = make(GuardRule::kRefuse, &pool_);
  learn_typical_norm(before);
  GradientIntake after = make(GuardRule::kRefuse, &pool_);
  after.restore(before.save(), Membership(4));
  EXPECT_EQ(add(after, 0, 1000.0F), Answer::kOutlier);
  EXPECT_TRUE(make(GuardRule::kOff, &pool_).save().empty());
}

}  // namespace
}  // namespace drover

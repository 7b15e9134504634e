// Schedules must start, fall and end where they say; names must be read back as they are written.
#include "core/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace drover {
namespace {

TEST(LearningRate, IsConstantByDefault) {
  const ScheduleSettings schedule{.base = 0.3};
  EXPECT_EQ(learning_rate(schedule, 0), 0.3);
  EXPECT_EQ(learning_rate(schedule, 1'000'000), 0.3);
}

TEST(LearningRate, WarmsUpInAStraightLine) {
  const ScheduleSettings schedule{.base = 0.8, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.8);
}

TEST(LearningRate, FallsInSteps) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::kStep, .base = 1.0, .decay_every = 10, .decay_factor = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 9), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 29), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 30), 0.125);
}

TEST(LearningRate, FallsInStepsOnlyIfToldHowOften) {
  EXPECT_EQ(learning_rate({.kind = ScheduleKind::kStep, .base = 1.0, .decay_every = 0}, 99), 1.0);
}

TEST(LearningRate, FollowsACosineFromTheWarmUpToTheEnd) {
  const ScheduleSettings schedule{.kind = ScheduleKind::kCosine,
                                  .base = 1.0,
                                  .warmup_steps = 10,
                                  .floor = 0.2,
                                  .total_steps = 110};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 9), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 1.0);
  EXPECT_NEAR(learning_rate(schedule, 60), 0.6, 1e-12);  // half-way
  // A quarter of the way: cos(pi / 4) = sqrt(1/2).
  EXPECT_NEAR(learning_rate(schedule, 35), 0.2 + 0.8 * (1.0 + std::sqrt(0.5)) / 2.0, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 110), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5000), 0.2);
  for (Step step = 10; step < 110; ++step) {
    ASSERT_GT(learning_rate(schedule, step), learning_rate(schedule, step + 1)) << step;
  }
}

TEST(LearningRate, IsBaseIfTheCosineHasNoRoom) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::kCosine, .base = 1.0, .warmup_steps = 10, .total_steps = 10};
  EXPECT_EQ(learning_rate(schedule, 50), 1.0);
}

TEST(Names, AreReadBackAsTheyAreWritten) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kNesterov,
        OptimizerKind::kRmsProp, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    EXPECT_EQ(parse_optimizer(name_of(kind)).value(), kind) << name_of(kind);
  }
  for (const ScheduleKind kind :
       {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine}) {
    EXPECT_EQ(parse_schedule(name_of(kind)).value(), kind) << name_of(kind);
  }
  EXPECT_EQ(name_of(OptimizerKind::kAdamW), "adamw");
  EXPECT_EQ(name_of(ScheduleKind::kCosine), "cosine");
}

TEST(Names, UnknownOnesAreAnsweredWithTheNearest) {
  const auto slip = parse_optimizer("nestorov");
  ASSERT_FALSE(slip.ok());
  EXPECT_EQ(slip.error().kind, ErrorKind::kInvalidInput);
  EXPECT_EQ(slip.error().message,
            "unknown optimizer 'nestorov'. Did you mean 'nesterov'? "
            "Known: sgd, momentum, nesterov, rmsprop, adam, adamw.");
  EXPECT_EQ(parse_schedule("exponential").error().message,
            "unknown schedule 'exponential'. Known: constant, step, cosine.");
  EXPECT_FALSE(parse_optimizer("").ok());
  EXPECT_FALSE(parse_optimizer("SGD").ok()) << "names are lower case";
}

}  // namespace
}  // namespace drover

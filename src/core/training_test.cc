// Schedules start, fall and end at the configured steps. Names parse to the same values.
#include "core/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/test_text.h"

namespace drover {
namespace {

using ::testing::Optional;

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

TEST(LearningRate, IsConstantWithoutAnIntervalOfDecay) {
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

TEST(LearningRate, IsBaseIfTheWarmUpTakesAllSteps) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::kCosine, .base = 1.0, .warmup_steps = 10, .total_steps = 10};
  EXPECT_EQ(learning_rate(schedule, 50), 1.0);
}

constexpr RateRule kRules[] = {RateRule::kNone, RateRule::kLinear, RateRule::kSqrt,
                               RateRule::kAdaScale};

TEST(RateFactor, FollowsItsFormulas) {
  EXPECT_EQ(rate_factor(RateRule::kNone, 16, 64, 100), 1.0);
  EXPECT_DOUBLE_EQ(rate_factor(RateRule::kLinear, 16, 64, 100), 0.25);
  EXPECT_DOUBLE_EQ(rate_factor(RateRule::kSqrt, 16, 64, 100), 0.5);
  // 1/4 * 164 / 116
  EXPECT_DOUBLE_EQ(rate_factor(RateRule::kAdaScale, 16, 64, 100), 0.25 * 164.0 / 116.0);
}

// The ratio of the published gains, calculated from variances.
TEST(RateFactor, AdaScaleIsTheRatioOfThePublishedGains) {
  const double trace = 37.0;  // tr(Sigma)
  const double mu2 = 0.5;
  const double batch = 8.0;
  const auto gain = [&](double samples) {
    const double sigma2 = trace / batch;
    return (sigma2 + mu2) / (sigma2 / (samples / batch) + mu2);
  };
  for (const double samples : {8.0, 24.0, 40.0, 64.0, 128.0}) {
    EXPECT_NEAR(rate_factor(RateRule::kAdaScale, samples, 64.0, trace / mu2),
                gain(samples) / gain(64.0), 1e-12);
  }
}

TEST(RateFactor, AdaScaleIsLinearWithNoiseOnlyAndNoneWithoutAny) {
  for (const double samples : {1.0, 16.0, 63.0}) {
    EXPECT_NEAR(rate_factor(RateRule::kAdaScale, samples, 64.0, 1e12), samples / 64.0, 1e-9);
    EXPECT_NEAR(rate_factor(RateRule::kAdaScale, samples, 64.0, 1e-12), 1.0, 1e-9);
  }
  EXPECT_EQ(rate_factor(RateRule::kAdaScale, 16, 64, 0.0), 1.0) << "not known yet";
}

TEST(RateFactor, IsExactlyOneForAFullStepWithEveryRule) {
  for (const RateRule rule : kRules) {
    for (const double full : {1.0, 3.0, 48.0, 65'537.0}) {
      for (const double noise_scale : {0.0, 1e-9, 0.3, 7.0, 1e9})
        EXPECT_EQ(rate_factor(rule, full, full, noise_scale), 1.0) << name_of(rule);
    }
    EXPECT_EQ(rate_factor(rule, 16, 0, 5.0), 1.0) << "the size of a full step is unknown";
  }
}

TEST(RateFactor, GrowsWithTheSamples) {
  for (const RateRule rule : {RateRule::kLinear, RateRule::kSqrt, RateRule::kAdaScale}) {
    EXPECT_EQ(rate_factor(rule, 0, 64, 10), 0.0);
    for (double samples = 1; samples <= 64; ++samples)
      EXPECT_LT(rate_factor(rule, samples - 1, 64, 10), rate_factor(rule, samples, 64, 10));
  }
}

TEST(Names, ParseToTheSameValues) {
  for (const RateRule rule : kRules) EXPECT_EQ(parse_rate_rule(name_of(rule)).value(), rule);
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

TEST(Names, ErrorsForUnknownOnesHaveTheNearest) {
  const auto slip = parse_optimizer("nestorov");
  ASSERT_FALSE(slip.ok());
  EXPECT_THAT(slip.error(), is_error(ErrorKind::kInvalidInput, "nestorov", "sgd", "momentum",
                                     "nesterov", "rmsprop", "adam", "adamw"));
  EXPECT_THAT(slip.error().message, proposes("nesterov"));
  EXPECT_THAT(parse_schedule("exponential").error(),
              is_error(ErrorKind::kInvalidInput, "exponential", "constant", "step", "cosine"));
  EXPECT_THAT(parse_rate_rule("adscale").error(),
              is_error(ErrorKind::kInvalidInput, "adscale", "none", "linear", "sqrt", "adascale"));
  EXPECT_THAT(parse_rate_rule("adscale").error().message, proposes("adascale"));
  EXPECT_FALSE(parse_optimizer("").ok());
  EXPECT_FALSE(parse_optimizer("SGD").ok()) << "names are lower case";
}

// A run is resumed only with the same settings. Settings that its optimiser does not use may
// differ; all other differences are named.
TEST(SettingTexts, NameDifferencesOfUsedSettings) {
  const OptimizerSettings adam{.kind = OptimizerKind::kAdam, .beta2 = 0.1 + 0.2};
  OptimizerSettings other = adam;
  other.momentum = 0.1;
  EXPECT_EQ(differences(texts_of(adam), texts_of(other)), std::nullopt);
  other.beta2 = 0.3;  // differs from 0.1 + 0.2 in the last bit
  EXPECT_THAT(differences(texts_of(adam), texts_of(other)),
              Optional(mentions("beta2", "0.30000000000000004", "0.3")));
  const OptimizerSettings momentum{.kind = OptimizerKind::kMomentum};
  EXPECT_THAT(differences(texts_of(adam), texts_of(momentum)),
              Optional(mentions("optimizer", "adam", "momentum")));
  const ScheduleSettings cosine{.kind = ScheduleKind::kCosine, .total_steps = 20};
  ScheduleSettings longer = cosine;
  longer.total_steps = 40;
  EXPECT_EQ(differences(texts_of(cosine), texts_of(longer)), std::nullopt);
  longer.warmup_steps = 5;
  EXPECT_THAT(differences(texts_of(cosine), texts_of(longer)),
              Optional(mentions("lr_warmup", 0, 5)));
  EXPECT_THAT(differences({}, {{"seed", "7"}}), Optional(mentions("seed", 7)));
}

}  // namespace
}  // namespace drover

// BlockOptimizer follows PyTorch's formulas, gives bitwise the same results on every machine, and
// changes nothing in a step without contributions.
#include "shard/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

BufferPool pool;

constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd,      OptimizerKind::kMomentum,
                                    OptimizerKind::kNesterov, OptimizerKind::kRmsProp,
                                    OptimizerKind::kAdam,     OptimizerKind::kAdamW};

SharedBuffer buffer_of(std::span<const float> values) {
  auto buffer = std::make_shared<FloatBuffer>(values.size());
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// The next version of `parameters` after one worker pushed `gradient`.
std::vector<float> next_of(BlockOptimizer& optimizer, double learning_rate,
                           const std::vector<float>& parameters,
                           const std::vector<float>& gradient) {
  GradientSum sum(SumOrder::kArrival, parameters.size(), &pool);
  sum.add(0, 4, buffer_of(gradient));
  std::vector<float> next(parameters.size(), std::nanf(""));
  optimizer.apply(sum, learning_rate, parameters, next);
  return next;
}

BlockOptimizer started(const OptimizerSettings& settings, std::span<const float> initial,
                       TensorKind kind = TensorKind::kTrained) {
  BlockOptimizer optimizer(settings, kind, initial.size());
  optimizer.start(initial);
  return optimizer;
}

// The formulas of the header for one element, in double precision.
struct Oracle {
  OptimizerSettings settings;
  double p;
  double average = p;
  double b = 0.0, m = 0.0, v = 0.0;
  int t = 0;

  void step(double g, double lr) {
    const OptimizerSettings& s = settings;
    ++t;
    if (s.kind == OptimizerKind::kAdamW) {
      p -= lr * s.weight_decay * p;
    } else {
      g += s.weight_decay * p;
    }
    switch (s.kind) {
      case OptimizerKind::kSgd:
        p -= lr * g;
        break;
      case OptimizerKind::kMomentum:
        b = t == 1 ? g : s.momentum * b + g;
        p -= lr * b;
        break;
      case OptimizerKind::kNesterov:
        b = t == 1 ? g : s.momentum * b + g;
        p -= lr * (g + s.momentum * b);
        break;
      case OptimizerKind::kRmsProp:
        v = s.rms_decay * v + (1.0 - s.rms_decay) * g * g;
        b = s.rms_momentum * b + g / (std::sqrt(v) + s.epsilon);
        p -= lr * b;
        break;
      case OptimizerKind::kAdam:
      case OptimizerKind::kAdamW: {
        m = s.beta1 * m + (1.0 - s.beta1) * g;
        v = s.beta2 * v + (1.0 - s.beta2) * g * g;
        const double m_hat = m / (1.0 - std::pow(s.beta1, t));
        const double v_hat = v / (1.0 - std::pow(s.beta2, t));
        p -= lr * m_hat / (std::sqrt(v_hat) + s.epsilon);
        break;
      }
    }
    const double decay = std::min(s.ema_decay, (1.0 + t) / (10.0 + t));
    average = decay * average + (1.0 - decay) * p;
  }
};

OptimizerSettings random_settings(OptimizerKind kind, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const auto sometimes = [&](double value) { return random() % 2 == 0 ? value : 0.0; };
  return {.kind = kind,
          .momentum = 0.98 * unit(random),
          .rms_decay = 0.5 + 0.499 * unit(random),
          .rms_momentum = sometimes(0.9 * unit(random)),
          .beta1 = 0.95 * unit(random),
          .beta2 = 0.9 + 0.0999 * unit(random),
          .epsilon = std::pow(10.0, -8.0 + 6.0 * unit(random)),
          .weight_decay = sometimes(0.1 * unit(random)),
          .ema_decay = sometimes(0.5 + 0.499 * unit(random))};
}

TEST(BlockOptimizer, AgreesWithTheFormulasInDoublePrecision) {
  for (const OptimizerKind kind : kKinds) {
    for (const size_t length : {1U, 15U, 16U, 17U, 1000U, 5000U}) {
      for (uint64_t seed = 0; seed < 8; ++seed) {
        SCOPED_TRACE(std::string(name_of(kind)) + " length " + std::to_string(length) + " seed " +
                     std::to_string(seed));
        std::mt19937_64 random(seed * 10'000 + length);
        std::normal_distribution<float> value;
        const OptimizerSettings settings = random_settings(kind, random);
        std::vector<float> now(length);
        for (float& each : now) each = value(random);
        std::vector<Oracle> wanted;
        wanted.reserve(length);
        for (const float each : now) wanted.push_back({.settings = settings, .p = each});

        BlockOptimizer optimizer = started(settings, now);
        std::vector<float> next(length);
        std::vector<float> mean(length);
        GradientSum sum(seed % 2 == 0 ? SumOrder::kArrival : SumOrder::kWorker, length, &pool);
        for (int step = 0; step < 20; ++step) {
          const double rate = 0.02 / (1.0 + step % 5);
          sum.reset();
          const auto workers = static_cast<WorkerId>(1 + random() % 4);
          for (WorkerId worker = 0; worker < workers; ++worker) {
            std::vector<float> gradient(length);
            for (float& each : gradient) each = value(random);
            sum.add(worker, static_cast<uint32_t>(1 + random() % 64), buffer_of(gradient));
          }
          sum.write_mean(0, mean);
          optimizer.apply(sum, rate, now, next);
          for (size_t i = 0; i < length; ++i) {
            wanted[i].step(mean[i], rate);
            ASSERT_NEAR(next[i], wanted[i].p, 1e-5 * std::max(1.0, std::abs(wanted[i].p)))
                << "step " << step << " element " << i;
            if (settings.ema_decay > 0.0) {
              ASSERT_NEAR(optimizer.averaged()[i], wanted[i].average,
                          1e-5 * std::max(1.0, std::abs(wanted[i].average)));
            }
          }
          std::swap(now, next);
        }
        ASSERT_EQ(optimizer.updates(), 20U);
        ASSERT_EQ(optimizer.averaged().empty(), settings.ema_decay == 0.0);
      }
    }
  }
}

// Known results, computed by hand from p = 1 with lr = 0.1 and gradients 1, then 2.
struct KnownAnswer {
  OptimizerSettings settings;
  float first;
  float second;
};

TEST(BlockOptimizer, GivesTheResultsComputedByHand) {
  const KnownAnswer answers[] = {
      // 1 - 0.1 * 1 = 0.9; 0.9 - 0.1 * 2 = 0.7
      {{.kind = OptimizerKind::kSgd}, 0.9F, 0.7F},
      // g = 1 + 0.5 * 1 = 1.5: 0.85; g = 2 + 0.5 * 0.85 = 2.425: 0.6075
      {{.kind = OptimizerKind::kSgd, .weight_decay = 0.5}, 0.85F, 0.6075F},
      // b = 1: 0.9; b = 0.5 * 1 + 2 = 2.5: 0.65
      {{.kind = OptimizerKind::kMomentum, .momentum = 0.5}, 0.9F, 0.65F},
      // b = 1, g + 0.5 b = 1.5: 0.85; b = 2.5, g + 0.5 b = 3.25: 0.525
      {{.kind = OptimizerKind::kNesterov, .momentum = 0.5}, 0.85F, 0.525F},
      // v = 0.25, 1 / 0.5 = 2: 0.8; v = 0.75 * 0.25 + 0.25 * 4 = 1.1875, 2 / 1.0897247 = 1.8353259
      {{.kind = OptimizerKind::kRmsProp, .rms_decay = 0.75, .epsilon = 0.0}, 0.8F, 0.61646741F},
      // ... b = 2: 0.8; b = 0.5 * 2 + 1.8353259 = 2.8353259
      {{.kind = OptimizerKind::kRmsProp, .rms_decay = 0.75, .rms_momentum = 0.5, .epsilon = 0.0},
       0.8F,
       0.51646741F},
      // m = 0.5, v = 0.25, corrected 1 and 1: 0.9
      // m = 1.25 / 0.75 = 1.6666667, v = 1.1875 / 0.4375 = 2.7142857: 0.9 - 0.1 * 1.0116284
      {{.kind = OptimizerKind::kAdam, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.0},
       0.9F,
       0.79883716F},
      // 1 * (1 - 0.1 * 0.5) = 0.95, - 0.1: 0.85; 0.85 * 0.95 = 0.8075, - 0.10116284
      {{.kind = OptimizerKind::kAdamW,
        .beta1 = 0.5,
        .beta2 = 0.75,
        .epsilon = 0.0,
        .weight_decay = 0.5},
       0.85F,
       0.70633716F},
  };
  for (const KnownAnswer& answer : answers) {
    SCOPED_TRACE(name_of(answer.settings.kind));
    const std::vector<float> initial = {1.0F};
    BlockOptimizer optimizer = started(answer.settings, initial);
    const std::vector<float> first = next_of(optimizer, 0.1, initial, {1.0F});
    EXPECT_FLOAT_EQ(first[0], answer.first);
    EXPECT_FLOAT_EQ(next_of(optimizer, 0.1, first, {2.0F})[0], answer.second);
  }
}

TEST(BlockOptimizer, MovesTheAverageSlowlyButNotAtFirst) {
  const std::vector<float> initial = {0.0F};
  BlockOptimizer optimizer = started({.ema_decay = 0.99}, initial);
  EXPECT_EQ(optimizer.averaged()[0], 0.0F);
  // Gradient -11 with rate 1 takes 0 to 11. The first decay is 2/11, so 9/11 of the way: 9.
  const std::vector<float> first = next_of(optimizer, 1.0, initial, {-11.0F});
  EXPECT_EQ(first[0], 11.0F);
  EXPECT_FLOAT_EQ(optimizer.averaged()[0], 9.0F);
  // The second is 3/12: 9 + 0.75 * (11 - 9) = 10.5.
  next_of(optimizer, 1.0, first, {0.0F});
  EXPECT_FLOAT_EQ(optimizer.averaged()[0], 10.5F);
}

TEST(BlockOptimizer, FusedEqualsSumFirstUpdateLater) {
  for (const OptimizerKind kind : kKinds) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(std::string(name_of(kind)) + " seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const OptimizerSettings settings = random_settings(kind, random);
      constexpr size_t length = 4500;  // three chunks, the last of them short
      std::normal_distribution<float> value;
      std::vector<float> now(length);
      for (float& each : now) each = value(random);
      BlockOptimizer fused = started(settings, now);
      BlockOptimizer unfused = started(settings, now);
      for (int step = 0; step < 3; ++step) {
        GradientSum sum(SumOrder::kArrival, length, &pool);
        for (WorkerId worker = 0; worker < 5; ++worker) {
          std::vector<float> gradient(length);
          for (float& each : gradient) each = value(random);
          sum.add(worker, worker + 1, buffer_of(gradient));
        }
        std::vector<float> next(length);
        fused.apply(sum, 0.1, now, next);

        std::vector<float> mean(length);
        sum.write_mean(0, mean);
        ASSERT_EQ(bits_of(next), bits_of(next_of(unfused, 0.1, now, mean)));
        ASSERT_EQ(bits_of(fused.averaged()), bits_of(unfused.averaged()));
        now = next;
      }
    }
  }
}

// Runs every rule on inputs made from integers and hashes the bits of the results. The hash is the
// same with every compiler, build type and processor, so that a run is bitwise reproducible on
// another machine.
TEST(BlockOptimizer, IsBitwiseTheSameOnEveryMachine) {
  constexpr size_t length = 2100;
  const auto value = [](uint64_t a, uint64_t b, uint64_t i) {
    return static_cast<float>(unit_interval(draw({a, b, i})) * 2.0 - 1.0);
  };
  uint64_t digest = 0;
  for (const OptimizerKind kind : kKinds) {
    for (const double rms_momentum : {0.0, 0.7}) {
      const OptimizerSettings settings{
          .kind = kind, .rms_momentum = rms_momentum, .weight_decay = 0.01, .ema_decay = 0.9};
      std::vector<float> now(length);
      for (size_t i = 0; i < length; ++i) now[i] = value(1, 0, i);
      BlockOptimizer optimizer = started(settings, now);
      for (uint64_t step = 0; step < 5; ++step) {
        GradientSum sum(SumOrder::kWorker, length, &pool);
        for (WorkerId worker = 0; worker < 3; ++worker) {
          std::vector<float> gradient(length);
          for (size_t i = 0; i < length; ++i) gradient[i] = value(2 + step, worker, i);
          sum.add(worker, 3 + 4 * worker, buffer_of(gradient));
        }
        std::vector<float> next(length);
        optimizer.apply(sum, 0.05, now, next);
        now = next;
      }
      for (const uint32_t bits : bits_of(now)) digest = mix_bits(digest ^ bits);
      for (const uint32_t bits : bits_of(optimizer.averaged())) digest = mix_bits(digest ^ bits);
    }
  }
  EXPECT_EQ(digest, 17801092171203888534U);
}

TEST(BlockOptimizer, TakesOtherSettingsFromStepToStep) {
  const std::vector<float> start = {1.0f};
  BlockOptimizer optimizer = started({.kind = OptimizerKind::kSgd}, start);
  std::vector<float> p = next_of(optimizer, 0.5, start, {1.0f});
  EXPECT_EQ(p[0], 0.5f);
  optimizer.use({.kind = OptimizerKind::kMomentum, .momentum = 0.5});
  p = next_of(optimizer, 1.0, p, {1.0f});
  EXPECT_EQ(p[0], -0.5f) << "momentum starts at zero";
  optimizer.use({.kind = OptimizerKind::kMomentum, .momentum = 2.0});
  p = next_of(optimizer, 1.0, p, {1.0f});
  EXPECT_EQ(p[0], -3.5f) << "and is kept";
}

TEST(BlockOptimizer, CorrectsTheBiasForTheBetasOfTheStep) {
  const OptimizerSettings before{.kind = OptimizerKind::kAdam, .beta1 = 0.9, .beta2 = 0.99};
  OptimizerSettings now = before;
  now.beta1 = 0.5;
  const std::vector<float> start = {1.0f};
  BlockOptimizer optimizer = started(before, start);
  const std::vector<float> first = next_of(optimizer, 0.1, start, {2.0f});
  optimizer.use(now);
  const std::vector<float> second = next_of(optimizer, 0.1, first, {1.0f});
  const double m = 0.5 * (0.1 * 2.0) + 0.5 * 1.0;
  const double v = 0.99 * (0.01 * 4.0) + 0.01 * 1.0;
  const double step = 0.1 * (m / (1 - 0.25)) / (std::sqrt(v / (1 - 0.99 * 0.99)) + 1e-8);
  EXPECT_NEAR(second[0], first[0] - step, 1e-5);
}

TEST(BlockOptimizer, ScalesTheMeanGradient) {
  const std::vector<float> start = {1.0f};
  BlockOptimizer optimizer = started({.kind = OptimizerKind::kSgd}, start);
  GradientSum sum(SumOrder::kArrival, 1, &pool);
  sum.add(0, 1, buffer_of(std::vector<float>{2.0f}));
  std::vector<float> next(1);
  optimizer.apply(sum, 1.0, start, next, 0.25);
  EXPECT_EQ(next[0], 0.5f);
}

TEST(BlockOptimizer, ChangesNothingWithoutContributions) {
  for (const OptimizerKind kind : kKinds) {
    SCOPED_TRACE(name_of(kind));
    const OptimizerSettings settings{
        .kind = kind, .rms_momentum = 0.5, .weight_decay = 0.1, .ema_decay = 0.9};
    const std::vector<float> initial = {1.0F, -2.0F, 3.0F};
    BlockOptimizer with_gap = started(settings, initial);
    BlockOptimizer without = started(settings, initial);
    std::vector<float> now = next_of(with_gap, 0.1, initial, {1.0F, 1.0F, 1.0F});
    ASSERT_EQ(now, next_of(without, 0.1, initial, {1.0F, 1.0F, 1.0F}));

    const GradientSum empty(SumOrder::kArrival, 3, &pool);
    std::vector<float> copy(3);
    with_gap.apply(empty, 0.1, now, copy);
    EXPECT_EQ(bits_of(copy), bits_of(now));
    EXPECT_EQ(with_gap.updates(), 1U);

    // The same as without the gap, including momentum, bias correction and average.
    EXPECT_EQ(next_of(with_gap, 0.1, now, {2.0F, 0.5F, -1.0F}),
              next_of(without, 0.1, now, {2.0F, 0.5F, -1.0F}));
    EXPECT_EQ(bits_of(with_gap.averaged()), bits_of(without.averaged()));
  }
}

TEST(BlockOptimizer, DoesNotChangeTheVersionBefore) {
  for (const OptimizerKind kind : kKinds) {
    const std::vector<float> before = {1.0F, 2.0F, 3.0F};
    std::vector<float> now = before;
    BlockOptimizer optimizer = started({.kind = kind}, now);
    next_of(optimizer, 0.1, now, {1.0F, 1.0F, 1.0F});
    EXPECT_EQ(now, before);
  }
}

TEST(BlockOptimizer, TakesTheMeanOfAveragedBlocks) {
  const OptimizerSettings settings{
      .kind = OptimizerKind::kAdam, .weight_decay = 0.1, .ema_decay = 0.9};
  const std::vector<float> initial(3000, 100.0F);
  BlockOptimizer optimizer = started(settings, initial, TensorKind::kAveraged);
  GradientSum sum(SumOrder::kArrival, 3000, &pool);
  sum.add(0, 1, buffer_of(std::vector<float>(3000, 2.0F)));
  sum.add(1, 3, buffer_of(std::vector<float>(3000, 6.0F)));
  std::vector<float> next(3000);
  optimizer.apply(sum, 0.1, initial, next);
  EXPECT_EQ(next, std::vector<float>(3000, 5.0F));
  EXPECT_TRUE(optimizer.averaged().empty()) << "the values themselves are to be evaluated";

  optimizer.apply(GradientSum(SumOrder::kArrival, 3000, &pool), 0.1, initial, next);
  EXPECT_EQ(next, initial);
}

TEST(BlockOptimizer, ManySmallBatchesEqualOneLargeBatch) {
  // Four workers with a quarter of the samples each are one worker with all of them, over 50 steps.
  for (const OptimizerKind kind : kKinds) {
    SCOPED_TRACE(name_of(kind));
    std::mt19937_64 random(5);
    std::normal_distribution<double> value;
    constexpr size_t length = 100;
    std::vector<float> one(length, 1.0F);
    std::vector<float> four = one;
    BlockOptimizer one_optimizer = started({.kind = kind}, one);
    BlockOptimizer four_optimizer = started({.kind = kind}, four);
    for (int step = 0; step < 50; ++step) {
      GradientSum sum(SumOrder::kArrival, length, &pool);
      std::vector<double> total(length, 0.0);
      for (WorkerId worker = 0; worker < 4; ++worker) {
        std::vector<float> gradient(length);
        for (size_t i = 0; i < length; ++i) {
          gradient[i] = static_cast<float>(4.0 + value(random));
          total[i] += gradient[i];
        }
        sum.add(worker, 16, buffer_of(gradient));
      }
      std::vector<float> mean(length);
      for (size_t i = 0; i < length; ++i) mean[i] = static_cast<float>(total[i] / 4.0);
      std::vector<float> next(length);
      four_optimizer.apply(sum, 0.001, four, next);
      four = next;
      one = next_of(one_optimizer, 0.001, one, mean);
    }
    for (size_t i = 0; i < length; ++i) EXPECT_NEAR(four[i], one[i], 1e-6 * std::abs(one[i]));
  }
}

TEST(BlockOptimizerDeathTest, RequiresEqualLengthsAndAStart) {
  std::vector<float> two(2);
  std::vector<float> three(3);
  std::vector<float> out(3);
  const GradientSum sum(SumOrder::kArrival, 3, &pool);
  BlockOptimizer optimizer({}, TensorKind::kTrained, 3);
  EXPECT_DEATH(optimizer.apply(sum, 0.1, three, out), "internal error") << "not started";
  EXPECT_DEATH(optimizer.start(two), "internal error");
  optimizer.start(three);
  EXPECT_DEATH(optimizer.apply(sum, 0.1, two, out), "internal error");
  EXPECT_DEATH(optimizer.apply(sum, 0.1, three, two), "internal error");
  EXPECT_DEATH(optimizer.apply(sum, 0.1, three, three), "internal error") << "not in place";
}

}  // namespace
}  // namespace drover

// Draws are those of SplitMix64: equal for equal keys, different for others. A permutation has
// every value exactly once.
#include "core/random_draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace drover {
namespace {

TEST(MixBits, IsSplitMix64) {
  // The published generator, seed 0 and seed 1234567: each output is the mix of the state before.
  EXPECT_EQ(mix_bits(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(mix_bits(1234567), 6457827717110365317ULL);
  EXPECT_EQ(mix_bits(1234567 + 0x9e3779b97f4a7c15ULL), 3203168211198807973ULL);
}

TEST(Draw, DependsOnEveryPartOfItsKeyAndOnTheirOrder) {
  static_assert(draw({1, 2, 3}) == draw({1, 2, 3}));
  const std::set<uint64_t> draws = {draw({}),        draw({0}),       draw({0, 0}),
                                    draw({1}),       draw({1, 2}),    draw({2, 1}),
                                    draw({1, 2, 0}), draw({0, 1, 2}), draw({1, 2, 3}),
                                    draw({3, 2, 1}), draw({1, 3, 2})};
  EXPECT_EQ(draws.size(), 11U);
}

TEST(Draw, DoesNotCollideOnSmallKeys) {
  std::set<uint64_t> draws;
  for (uint64_t step = 0; step < 200; ++step) {
    for (uint64_t worker = 0; worker < 200; ++worker) draws.insert(draw({1, 2, step, worker}));
  }
  EXPECT_EQ(draws.size(), 40'000U);
}

TEST(UnitInterval, StaysBelowOneAndIsUniform) {
  EXPECT_EQ(unit_interval(0), 0.0);
  EXPECT_LT(unit_interval(~uint64_t{0}), 1.0);
  EXPECT_EQ(unit_interval(uint64_t{1} << 63), 0.5);

  constexpr int count = 100'000;
  double sum = 0.0;
  double squares = 0.0;
  for (uint64_t i = 0; i < count; ++i) {
    const double value = unit_interval(draw({42, i}));
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  // Means of n draws: 1/2 and 1/3, with deviations 0.289 / sqrt(n) and 0.298 / sqrt(n); five of
  // them.
  EXPECT_NEAR(sum / count, 1.0 / 2.0, 5.0 * 0.29 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1.0 / 3.0, 5.0 * 0.30 / std::sqrt(count));
}

TEST(Permutation, HasEveryValueOnce) {
  std::vector<uint64_t> sizes = {1000, 1023, 1024, 1025, 4096, 4097, 50'000};
  for (uint64_t size = 1; size <= 130; ++size) sizes.push_back(size);
  for (const uint64_t size : sizes) {
    for (uint64_t key = 0; key < 4; ++key) {
      SCOPED_TRACE("size " + std::to_string(size) + " key " + std::to_string(key));
      const Permutation permutation(size, key);
      std::vector<bool> seen(size, false);
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t value = permutation(i);
        ASSERT_LT(value, size);
        ASSERT_FALSE(seen[value]);
        seen[value] = true;
        ASSERT_EQ(permutation(i), value) << "the same index again";
      }
    }
  }
}

TEST(Permutation, WorksAtTheLargestSizes) {
  for (const uint64_t size : {uint64_t{1} << 62, (uint64_t{1} << 62) + 1, ~uint64_t{0}}) {
    const Permutation permutation(size, 9);
    std::set<uint64_t> values;
    for (uint64_t i = 0; i < 1000; ++i) {
      values.insert(permutation(i));
      values.insert(permutation(size - 1 - i));
    }
    EXPECT_EQ(values.size(), 2000U);
    EXPECT_LT(*values.rbegin(), size);
  }
}

TEST(Permutation, IsUniformOverKeys) {
  // Over keys, each of 10 indices should meet each of 10 values a tenth of the time. With n = 20000
  // the count has mean 2000 and deviation sqrt(n 0.1 0.9) = 42; six of them.
  constexpr uint64_t size = 10;
  constexpr uint64_t keys = 20'000;
  std::vector<int> count(size * size, 0);
  for (uint64_t key = 0; key < keys; ++key) {
    const Permutation permutation(size, draw({key}));
    for (uint64_t i = 0; i < size; ++i) ++count[i * size + permutation(i)];
  }
  for (const int each : count) EXPECT_NEAR(each, 2000, 6 * 42);
}

TEST(PermutationDeathTest, RefusesIndexesOutsideTheSize) {
  EXPECT_DEATH(Permutation(0, 1), "internal error");
  EXPECT_DEATH(Permutation(5, 1)(5), "internal error");
  EXPECT_DEATH(sample_at(1, 0, 0), "internal error");
}

TEST(SampleAt, HasEverySampleOnceInAnEpoch) {
  constexpr uint64_t size = 37;
  std::vector<std::vector<uint64_t>> stretches;
  for (uint64_t stretch = 0; stretch < 5; ++stretch) {
    std::vector<uint64_t> samples;
    samples.reserve(size);
    for (uint64_t i = 0; i < size; ++i) samples.push_back(sample_at(3, size, stretch * size + i));
    stretches.push_back(samples);
    std::sort(samples.begin(), samples.end());
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(samples[i], i);
  }
  for (size_t i = 1; i < stretches.size(); ++i) EXPECT_NE(stretches[i], stretches[i - 1]);
}

TEST(SampleAt, DependsOnTheSeed) {
  int equal = 0;
  for (uint64_t position = 0; position < 1000; ++position) {
    if (sample_at(1, 1000, position) == sample_at(2, 1000, position)) ++equal;
  }
  EXPECT_LT(equal, 10);  // the expected number is one
}

}  // namespace
}  // namespace drover

// The kernels give bitwise the results of a plain loop at every length and alignment, with any
// instruction set, and find every NaN and infinity.
#include "shard/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/random_draw.h"

namespace drover {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Values of many magnitudes, so that any difference in the order of operations shows in rounding.
std::vector<float> random_values(uint64_t seed, size_t size) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    const double unit = unit_interval(draw({seed, i, 0})) * 2.0 - 1.0;
    const auto exponent = static_cast<int>(draw({seed, i, 1}) % 20) - 10;
    values[i] = static_cast<float>(std::ldexp(unit, exponent));
  }
  return values;
}

std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// a * b rounded to float. `volatile` prevents a fused multiply-add, even if the test is built for a
// processor that has one.
float rounded_product(float a, float b) {
  const volatile float product = a * b;
  return product;
}

// Every small length, so that each remainder after whole vectors occurs, and two long ones.
std::vector<size_t> lengths() {
  std::vector<size_t> all;
  for (size_t length = 0; length <= 70; ++length) all.push_back(length);
  all.push_back(1000);
  all.push_back(4099);
  return all;
}

double exact_squares(std::span<const float> values) {
  long double sum = 0.0L;
  for (const float value : values)
    sum += static_cast<long double>(value) * static_cast<long double>(value);
  return static_cast<double>(sum);
}

TEST(SumOfSquares, EqualsAPlainLoopAtEveryLengthAndAlignment) {
  for (const size_t length : lengths()) {
    for (const size_t offset : {0U, 1U, 3U}) {
      const std::vector<float> values = random_values(length + 7, length + offset);
      const auto part = std::span(values).subspan(offset);
      const double exact = exact_squares(part);
      EXPECT_NEAR(sum_of_squares(part), exact, 1e-6 * exact) << length << " from " << offset;
    }
  }
  const std::vector<float> many(1'000'000, 0.1F);
  EXPECT_NEAR(sum_of_squares(many) / exact_squares(many), 1.0, 1e-6);
}

TEST(SumOfSquares, IsAsExactForHugeAndTinyValues) {
  using Limits = std::numeric_limits<float>;
  for (const float value : {Limits::max(), 1e30F, 1e13F, 1e-18F, 1e-22F, 1e-25F}) {
    const std::vector<float> values(1000, value);
    const double exact = exact_squares(values);
    EXPECT_NEAR(sum_of_squares(values) / exact, 1.0, 1e-6) << value;
  }
}

TEST(SumOfSquares, IsNanExactlyIfAValueIsNotFinite) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const size_t length : {1U, 7U, 64U, 67U, 300U}) {
      std::vector<float> values(length, std::numeric_limits<float>::max());
      EXPECT_TRUE(std::isfinite(sum_of_squares(values)));
      for (size_t i = 0; i < length; ++i) {
        std::vector<float> corrupt = values;
        corrupt[i] = bad;
        ASSERT_TRUE(std::isnan(sum_of_squares(corrupt))) << i << " of " << length;
      }
    }
  }
  EXPECT_EQ(sum_of_squares({}), 0.0);
}

TEST(SetScaled, WithSquaresGivesTheSameBitsAndTheSquaresOfTheResult) {
  SquareSum squares;
  double exact = 0.0;
  for (const size_t length : lengths()) {
    if (length > kScaledMax) continue;
    for (const size_t offset : {0U, 1U}) {
      const std::vector<float> all = random_values(1 + length, length + offset);
      const std::span values = std::span(all).subspan(offset);
      std::vector<float> scaled(values.size());
      std::vector<float> squared(values.size());
      set_scaled(scaled, values, 0.3F);
      set_scaled(squared, values, 0.3F, squares);
      ASSERT_EQ(bits_of(squared), bits_of(scaled)) << length;
      exact += exact_squares(squared);
    }
  }
  EXPECT_NEAR(squares.total(), exact, 1e-6 * exact);
}

TEST(TakeIn, WritesTheSumAndReturnsTheSquares) {
  for (const size_t length : lengths()) {
    for (const size_t offset : {0U, 1U, 3U}) {
      const std::vector<float> a_all = random_values(2 * length, length + offset);
      const std::vector<float> b = random_values(2 * length + 1, length);
      const std::span a = std::span(a_all).subspan(offset);
      std::vector<float> wanted(length);
      std::vector<float> out(length, kNan);
      set_sum(wanted, a, b, 0.7F);
      const double exact = exact_squares(b);
      out.assign(a.begin(), a.end());
      EXPECT_NEAR(add_in(out, b, 0.7F), exact, 1e-6 * exact);
      ASSERT_EQ(bits_of(out), bits_of(wanted)) << length;
      EXPECT_NEAR(take_in(out, b), exact, 1e-6 * exact);
      ASSERT_EQ(bits_of(out), bits_of(b));
    }
  }
  const std::vector<float> huge(100, 1e30F);  // their squares overflow a float
  std::vector<float> out(100);
  EXPECT_NEAR(take_in(out, huge) / exact_squares(huge), 1.0, 1e-6);
}

TEST(TakeIn, IsNanExactlyIfAWrittenValueIsNotFinite) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const size_t length : {1U, 7U, 32U, 67U, 5000U}) {
      const std::vector<float> fine(length, -2.0F);
      std::vector<float> out(length);
      EXPECT_TRUE(std::isfinite(take_in(out, fine)));
      for (size_t i = 0; i < length; i += 1 + length / 50) {
        std::vector<float> corrupt = fine;
        corrupt[i] = bad;
        ASSERT_TRUE(std::isnan(take_in(out, corrupt))) << i << " of " << length;
        out = fine;
        ASSERT_TRUE(std::isnan(add_in(out, corrupt, 0.5F))) << i << " of " << length;
        for (size_t j = 0; j < length; ++j) ASSERT_EQ(out[j], j == i ? -2.0F : -3.0F) << j;
      }
    }
  }
}

TEST(AllFinite, AcceptsEveryKindOfFiniteValue) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> values = {0.0F,           -0.0F,          1.0F,
                                     Limits::max(),  -Limits::max(), Limits::min(),
                                     -Limits::min(), 0x1.0p-149F,    -0x1.0p-149F};
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_finite({}));
}

TEST(AllFinite, FindsABadValueAtEveryPosition) {
  const float signalling = std::bit_cast<float>(0x7f800001U);
  const float negative_nan = std::bit_cast<float>(0xffc00000U);
  for (const float bad : {kNan, negative_nan, signalling, kInfinity, -kInfinity}) {
    for (const size_t length : {1U, 7U, 16U, 17U, 67U, 300U}) {
      std::vector<float> values = random_values(length, length);
      for (size_t i = 0; i < length; ++i) {
        const float good = values[i];
        values[i] = bad;
        ASSERT_FALSE(all_finite(values)) << "position " << i << " of " << length;
        // It does not read beyond the span.
        ASSERT_TRUE(all_finite(std::span(values).first(i))) << i;
        ASSERT_TRUE(all_finite(std::span(values).subspan(i + 1))) << i;
        values[i] = good;
      }
    }
  }
}

TEST(Kernels, EqualAPlainLoopBitwise) {
  for (const size_t length : lengths()) {
    for (size_t offset = 0; offset < 3; ++offset) {  // floats past an aligned address
      SCOPED_TRACE("length " + std::to_string(length) + " offset " + std::to_string(offset));
      const std::vector<float> a_all = random_values(3 * length + offset, length + offset);
      const std::vector<float> b_all = random_values(7 * length + offset, length + offset);
      const std::span a = std::span(a_all).subspan(offset);
      const std::span b = std::span(b_all).subspan(offset);
      const float weight = 0.7F + static_cast<float>(offset);

      std::vector<float> sum_wanted;
      std::vector<float> scaled_wanted;
      std::vector<float> moved_wanted;
      for (size_t i = 0; i < length; ++i) {
        sum_wanted.push_back(a[i] + rounded_product(weight, b[i]));
        scaled_wanted.push_back(rounded_product(a[i], weight));
        moved_wanted.push_back(a[i] + rounded_product(weight, b[i] - a[i]));
      }

      std::vector<float> out = a_all;
      const std::span written = std::span(out).subspan(offset);
      add_scaled(written, b, weight);
      ASSERT_EQ(bits_of(written), bits_of(sum_wanted));

      std::vector<float> fresh(length, kNan);
      set_sum(fresh, a, b, weight);
      ASSERT_EQ(bits_of(fresh), bits_of(sum_wanted));

      set_scaled(fresh, a, weight);
      ASSERT_EQ(bits_of(fresh), bits_of(scaled_wanted));

      out = a_all;
      move_towards(written, b, weight);
      ASSERT_EQ(bits_of(written), bits_of(moved_wanted));
    }
  }
}

TEST(Kernels, WriteNothingOutsideTheirSpan) {
  for (size_t length = 0; length <= 40; ++length) {
    std::vector<float> buffer(length + 2, 5.0F);
    const std::vector<float> in(length, 1.0F);
    const std::span inside = std::span(buffer).subspan(1, length);
    add_scaled(inside, in, 2.0F);
    set_scaled(inside, in, 2.0F);
    take_in(inside, in);
    add_in(inside, in, 2.0F);
    set_sum(inside, in, in, 2.0F);
    move_towards(inside, in, 0.5F);
    ASSERT_EQ(buffer.front(), 5.0F) << length;
    ASSERT_EQ(buffer.back(), 5.0F) << length;
  }
}

TEST(KernelsDeathTest, RefuseUnequalSizes) {
  std::vector<float> three(3);
  const std::vector<float> four(4);
  EXPECT_DEATH(add_scaled(three, four, 1.0F), "internal error");
  EXPECT_DEATH(set_sum(three, three, four, 1.0F), "internal error");
  EXPECT_DEATH(move_towards(three, four, 1.0F), "internal error");
  EXPECT_DEATH(set_scaled(three, four, 1.0F), "internal error");
  EXPECT_DEATH(take_in(three, four), "internal error");
}

}  // namespace
}  // namespace drover

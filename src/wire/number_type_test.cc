// Conversion to 16 bits rounds to the nearest number and keeps NaN and infinity.
#include "wire/number_type.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace drover {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float there_and_back(NumberType type, float value) {
  uint16_t half = 0;
  float back = 0.0F;
  narrow(type, {&value, 1}, {&half, 1});
  widen(type, {&half, 1}, {&back, 1});
  return back;
}

// Every finite number of the type, in order.
std::vector<float> all_numbers(NumberType type) {
  std::vector<float> numbers;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    float value = 0.0F;
    widen(type, {&half, 1}, {&value, 1});
    if (std::isfinite(value) && !(value == 0.0F && std::signbit(value))) numbers.push_back(value);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST(NumberType, KnownValues) {
  struct Known {
    NumberType type;
    float value;
    uint16_t half;
  };
  const Known table[] = {
      {NumberType::kFloat16, 1.0F, 0x3c00},       {NumberType::kFloat16, -2.0F, 0xc000},
      {NumberType::kFloat16, 65504.0F, 0x7bff},   {NumberType::kFloat16, 0x1.0p-14F, 0x0400},
      {NumberType::kFloat16, 0x1.0p-24F, 0x0001}, {NumberType::kFloat16, 65520.0F, 0x7c00},
      {NumberType::kFloat16, -0.0F, 0x8000},      {NumberType::kFloat16, 1e9F, 0x7c00},
      {NumberType::kBfloat16, 1.0F, 0x3f80},      {NumberType::kBfloat16, -kInfinity, 0xff80},
      {NumberType::kBfloat16, 3.0e38F, 0x7f62},
  };
  for (const Known& known : table) {
    uint16_t half = 0;
    narrow(known.type, {&known.value, 1}, {&half, 1});
    EXPECT_EQ(half, known.half) << known.value;
  }
}

TEST(NumberType, RepresentableNumbersAreUnchanged) {
  for (const NumberType type : {NumberType::kBfloat16, NumberType::kFloat16}) {
    for (const float value : all_numbers(type)) ASSERT_EQ(there_and_back(type, value), value);
  }
}

TEST(NumberType, RoundsToTheNearestAndTiesToEven) {
  for (const NumberType type : {NumberType::kBfloat16, NumberType::kFloat16}) {
    const std::vector<float> numbers = all_numbers(type);
    std::mt19937_64 random(1);
    for (int i = 0; i < 200'000; ++i) {
      // Between two neighbours, or exactly in the middle.
      const size_t at = random() % (numbers.size() - 1);
      const double low = static_cast<double>(numbers[at]);
      const double high = static_cast<double>(numbers[at + 1]);
      const double share = i % 4 == 0 ? 0.5 : static_cast<double>(random() % 1000) / 1000.0;
      const auto value = static_cast<float>(low + (high - low) * share);
      const double exact = static_cast<double>(value);
      const double back = static_cast<double>(there_and_back(type, value));
      const double error = std::min(exact - low, high - exact);
      ASSERT_EQ(std::abs(back - exact), error) << low << " " << exact << " " << high;
      if (exact - low == high - exact) {
        uint16_t half = 0;
        narrow(type, {&value, 1}, {&half, 1});
        ASSERT_EQ(half % 2, 0) << exact;
      }
    }
  }
}

TEST(NumberType, NanAndInfinityAreKept) {
  for (const NumberType type : {NumberType::kBfloat16, NumberType::kFloat16}) {
    EXPECT_EQ(there_and_back(type, kInfinity), kInfinity);
    EXPECT_EQ(there_and_back(type, -kInfinity), -kInfinity);
    for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu})
      EXPECT_TRUE(std::isnan(there_and_back(type, std::bit_cast<float>(bits)))) << bits;
  }
}

TEST(NumberType, ASpanIsConvertedLikeItsElements) {
  std::mt19937_64 random(2);
  for (const NumberType type : {NumberType::kBfloat16, NumberType::kFloat16}) {
    std::vector<float> values(1000);
    for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    std::vector<uint16_t> halves(values.size());
    std::vector<float> back(values.size());
    narrow(type, values, halves);
    widen(type, halves, back);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(back[i]),
                std::bit_cast<uint32_t>(there_and_back(type, values[i])));
    }
  }
}

}  // namespace
}  // namespace drover

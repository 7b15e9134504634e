#include "wire/number_type.h"

#include <bit>

#include "core/check.h"

namespace drover {
namespace {

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7f800000;

// Uses ?: instead of branches, so that the compiler vectorises the loops below.

uint16_t to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // Adds half of the last place, or one less, so that ties round to even.
  const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  // Rounding could turn a NaN into infinity; setting a bit keeps it a quiet NaN.
  const uint32_t quiet = bits | 0x00400000;
  return static_cast<uint16_t>(((bits & ~kSign) > kInfinity ? quiet : rounded) >> 16);
}

float from_bfloat16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

uint16_t to_float16(float value) {
  constexpr uint32_t kOverflow = 0x47800000;  // 2^16
  constexpr uint32_t kSmallest = 0x38800000;  // 2^-14, the least normal number
  constexpr uint32_t kRebias = 112u << 23;    // the exponent's bias is 15 instead of 127
  constexpr uint32_t kOneHalf = 0x3f000000;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t size = bits & ~kSign;
  const uint32_t normal = (size - kRebias + 0x0fff + ((size >> 13) & 1)) >> 13;
  // Near 0.5, the spacing of floats is that of subnormal float16 numbers, so adding 0.5 rounds to
  // it.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5F) - kOneHalf;
  const uint32_t special = size > kInfinity ? 0x7e00 : 0x7c00;
  const uint32_t half = size >= kOverflow ? special : (size < kSmallest ? subnormal : normal);
  return static_cast<uint16_t>(half | ((bits & kSign) >> 16));
}

float from_float16(uint16_t half) {
  constexpr float kRebias = 0x1.0p112F;
  const uint32_t size = half & 0x7fffu;
  // The multiplication corrects the exponent, also of subnormal float16 numbers.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(size << 13) * kRebias);
  const uint32_t special = (size << 13) | kInfinity;
  const uint32_t bits = size >= 0x7c00 ? special : finite;
  return std::bit_cast<float>(bits | ((half & 0x8000u) << 16));
}

}  // namespace

std::string_view name_of(NumberType type) {
  switch (type) {
    case NumberType::kFloat32:
      return "float32";
    case NumberType::kBfloat16:
      return "bfloat16";
    case NumberType::kFloat16:
      return "float16";
  }
  return "unknown";
}

void narrow(NumberType type, std::span<const float> from, std::span<uint16_t> to) {
  DROVER_CHECK(from.size() == to.size());
  DROVER_CHECK(type != NumberType::kFloat32);
  const float* const in = from.data();
  uint16_t* const out = to.data();
  if (type == NumberType::kBfloat16) {
    for (size_t i = 0; i < from.size(); ++i) out[i] = to_bfloat16(in[i]);
  } else {
    for (size_t i = 0; i < from.size(); ++i) out[i] = to_float16(in[i]);
  }
}

void widen(NumberType type, std::span<const uint16_t> from, std::span<float> to) {
  DROVER_CHECK(from.size() == to.size());
  DROVER_CHECK(type != NumberType::kFloat32);
  const uint16_t* const in = from.data();
  float* const out = to.data();
  if (type == NumberType::kBfloat16) {
    for (size_t i = 0; i < from.size(); ++i) out[i] = from_bfloat16(in[i]);
  } else {
    for (size_t i = 0; i < from.size(); ++i) out[i] = from_float16(in[i]);
  }
}

}  // namespace drover

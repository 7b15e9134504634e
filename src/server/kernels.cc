#include "server/kernels.h"

#include <bit>
#include <cstddef>

#include "core/check.h"

#if defined(__GNUC__) && !defined(__clang__) && !defined(__NO_MATH_ERRNO__)
#error "compile this file with -O3 -ffp-contract=off -fno-math-errno; kernels.h says why"
#endif

namespace drover {
namespace {

// The loops take bare pointers: `__restrict` spares them a check for overlap, and a span's own
// bounds checks, where they are switched on, would keep them from being vectorised.

DROVER_KERNEL
bool all_finite_loop(const float* __restrict values, size_t size) {
  // NaN and infinity are exactly the floats whose exponent bits are all ones. Testing integers
  // rather than values keeps this true under any floating-point option. There is no early exit:
  // bad gradients are rare, and the loop would not vectorise.
  constexpr uint32_t exponent = 0x7f800000;
  uint32_t bad = 0;
  for (size_t i = 0; i < size; ++i) {
    bad |= (std::bit_cast<uint32_t>(values[i]) & exponent) == exponent ? 1U : 0U;
  }
  return bad == 0;
}

DROVER_KERNEL
void add_scaled_loop(float* __restrict sum, const float* __restrict in, float weight, size_t size) {
  for (size_t i = 0; i < size; ++i) sum[i] += weight * in[i];
}

DROVER_KERNEL
void set_sum_loop(float* __restrict out, const float* __restrict a, const float* __restrict b,
                  float weight, size_t size) {
  for (size_t i = 0; i < size; ++i) out[i] = a[i] + weight * b[i];
}

DROVER_KERNEL
void scale_loop(float* __restrict values, float factor, size_t size) {
  for (size_t i = 0; i < size; ++i) values[i] *= factor;
}

DROVER_KERNEL
void move_towards_loop(float* __restrict follower, const float* __restrict leader, float share,
                       size_t size) {
  for (size_t i = 0; i < size; ++i) follower[i] += share * (leader[i] - follower[i]);
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return all_finite_loop(values.data(), values.size());
}

void add_scaled(std::span<float> sum, std::span<const float> in, float weight) {
  DROVER_CHECK(in.size() == sum.size());
  add_scaled_loop(sum.data(), in.data(), weight, sum.size());
}

void set_sum(std::span<float> out, std::span<const float> a, std::span<const float> b,
             float weight) {
  DROVER_CHECK(a.size() == out.size());
  DROVER_CHECK(b.size() == out.size());
  set_sum_loop(out.data(), a.data(), b.data(), weight, out.size());
}

void scale(std::span<float> values, float factor) {
  scale_loop(values.data(), factor, values.size());
}

void move_towards(std::span<float> follower, std::span<const float> leader, float share) {
  DROVER_CHECK(leader.size() == follower.size());
  move_towards_loop(follower.data(), leader.data(), share, follower.size());
}

}  // namespace drover

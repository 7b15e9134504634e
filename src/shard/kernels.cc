#include "shard/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/check.h"

#if defined(__GNUC__) && !defined(__clang__) && !defined(__NO_MATH_ERRNO__)
#error "compile this file with -O3 -ffp-contract=off -fno-math-errno; kernels.h says why"
#endif

namespace drover {
namespace {

// The loops take raw pointers: `__restrict` avoids a check for overlap, and a span's bounds checks,
// if they are enabled, would prevent vectorisation.

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

// Sixteen floats, added up lane by lane on every machine, so that all round the same way. A plain
// sum could not be vectorised without changing the order.
using Lanes __attribute__((vector_size(64))) = float;
constexpr size_t kLanes = SquareSum::kLanes;
constexpr size_t kAbreast = 4 * kLanes;  // independent additions
// Up to this many floats are summed as floats; these partial sums are summed as doubles.
constexpr size_t kPartialSum = kScaledMax;
// Squares of small gradients would be subnormal, which many processors handle a hundred times more
// slowly. With this factor on the values they are so only below 1e-26.
constexpr float kLift = 0x1.0p24F;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLift2 = static_cast<double>(kLift) * static_cast<double>(kLift);

// Unaligned loads and stores. By reference: returning vectors by value depends on the architecture.
inline void load(const float* from, Lanes& to) { std::memcpy(&to, from, sizeof(to)); }
inline void store(const Lanes& from, float* to) { std::memcpy(to, &from, sizeof(from)); }

inline void add_lanes(const Lanes& stretch, double* __restrict lanes) {
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(stretch[lane]);
}

inline double lifted_square(float value) {
  const double lifted = static_cast<double>(kLift) * static_cast<double>(value);
  return lifted * lifted;
}

DROVER_KERNEL
void squares_loop(const float* __restrict values, size_t size, double* __restrict lanes) {
  size_t i = 0;
  const size_t whole = size - size % kAbreast;
  while (i < whole) {
    Lanes a{};
    Lanes b{};
    Lanes c{};
    Lanes d{};
    for (const size_t end = std::min(whole, i + kPartialSum); i < end; i += kAbreast) {
      Lanes p;
      Lanes q;
      Lanes r;
      Lanes s;
      load(values + i, p);
      load(values + i + kLanes, q);
      load(values + i + 2 * kLanes, r);
      load(values + i + 3 * kLanes, s);
      a += (kLift * p) * (kLift * p);
      b += (kLift * q) * (kLift * q);
      c += (kLift * r) * (kLift * r);
      d += (kLift * s) * (kLift * s);
    }
    add_lanes((a + b) + (c + d), lanes);
  }
  for (; i < size; ++i) lanes[i % kLanes] += lifted_square(values[i]);
}

DROVER_KERNEL
void set_scaled_and_square_loop(float* __restrict out, const float* __restrict in, float factor,
                                size_t size, double* __restrict lanes) {
  size_t i = 0;
  const size_t whole = size - size % (2 * kLanes);
  Lanes a{};
  Lanes b{};
  for (; i < whole; i += 2 * kLanes) {
    Lanes p;
    Lanes q;
    load(in + i, p);
    load(in + i + kLanes, q);
    p *= factor;
    q *= factor;
    store(p, out + i);
    store(q, out + i + kLanes);
    a += (kLift * p) * (kLift * p);
    b += (kLift * q) * (kLift * q);
  }
  add_lanes(a + b, lanes);
  for (; i < size; ++i) {
    out[i] = factor * in[i];
    lanes[i % kLanes] += lifted_square(out[i]);
  }
}

// Zero times the written values adds up to zero, unless a value was not finite.
inline bool all_zero(const Lanes& sums) {
  float sum = 0.0F;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum == 0.0F;
}

// Returns whether all written values are finite.
DROVER_KERNEL
bool copy_in_loop(float* __restrict out, const float* __restrict in, size_t size,
                  double* __restrict lanes) {
  size_t i = 0;
  const size_t whole = size - size % (2 * kLanes);
  Lanes zero{};
  while (i < whole) {
    Lanes a{};
    Lanes b{};
    for (const size_t end = std::min(whole, i + kPartialSum); i < end; i += 2 * kLanes) {
      Lanes p;
      Lanes q;
      load(in + i, p);
      load(in + i + kLanes, q);
      store(p, out + i);
      store(q, out + i + kLanes);
      zero += 0.0F * p;
      zero += 0.0F * q;
      a += (kLift * p) * (kLift * p);
      b += (kLift * q) * (kLift * q);
    }
    add_lanes(a + b, lanes);
  }
  float rest = 0.0F;
  for (; i < size; ++i) {
    const float value = in[i];
    out[i] = value;
    rest += 0.0F * value;
    lanes[i % kLanes] += lifted_square(value);
  }
  return all_zero(zero) && rest == 0.0F;
}

DROVER_KERNEL
bool add_in_loop(float* __restrict sum, const float* __restrict in, float weight, size_t size,
                 double* __restrict lanes) {
  size_t i = 0;
  const size_t whole = size - size % (2 * kLanes);
  const Lanes none{};
  Lanes zero{};
  while (i < whole) {
    Lanes a{};
    Lanes b{};
    for (const size_t end = std::min(whole, i + kPartialSum); i < end; i += 2 * kLanes) {
      Lanes p;
      Lanes q;
      Lanes s;
      Lanes t;
      load(in + i, p);
      load(in + i + kLanes, q);
      load(sum + i, s);
      load(sum + i + kLanes, t);
      const Lanes s_new = s + weight * p;
      const Lanes t_new = t + weight * q;
      const Lanes s_zero = 0.0F * s_new;
      const Lanes t_zero = 0.0F * t_new;
      s = s_zero == none ? s_new : s;
      t = t_zero == none ? t_new : t;
      store(s, sum + i);
      store(t, sum + i + kLanes);
      zero += s_zero;
      zero += t_zero;
      a += (kLift * p) * (kLift * p);
      b += (kLift * q) * (kLift * q);
    }
    add_lanes(a + b, lanes);
  }
  float rest = 0.0F;
  for (; i < size; ++i) {
    const float value = in[i];
    const float total = sum[i] + weight * value;
    const float none_or_nan = 0.0F * total;
    if (none_or_nan == 0.0F) sum[i] = total;
    rest += none_or_nan;
    lanes[i % kLanes] += lifted_square(value);
  }
  return all_zero(zero) && rest == 0.0F;
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
void set_scaled_loop(float* __restrict out, const float* __restrict in, float factor, size_t size) {
  for (size_t i = 0; i < size; ++i) out[i] = factor * in[i];
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

double SquareSum::total() const {
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum / kLift2;
}

double sum_of_squares(std::span<const float> values) {
  SquareSum squares;
  squares_loop(values.data(), values.size(), squares.lanes.data());
  if (const double quick = squares.total(); std::isfinite(quick)) return quick;
  if (!all_finite(values)) return kNaN;
  double sum = 0.0;  // the square of no float overflows a double
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
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

void set_scaled(std::span<float> out, std::span<const float> in, float factor) {
  DROVER_CHECK(in.size() == out.size());
  set_scaled_loop(out.data(), in.data(), factor, out.size());
}

void set_scaled(std::span<float> out, std::span<const float> in, float factor, SquareSum& squares) {
  DROVER_CHECK(in.size() == out.size());
  DROVER_CHECK(out.size() <= kScaledMax);
  set_scaled_and_square_loop(out.data(), in.data(), factor, out.size(), squares.lanes.data());
}

double take_in(std::span<float> out, std::span<const float> in) {
  DROVER_CHECK(in.size() == out.size());
  SquareSum squares;
  if (!copy_in_loop(out.data(), in.data(), out.size(), squares.lanes.data())) return kNaN;
  const double quick = squares.total();
  return std::isfinite(quick) ? quick : sum_of_squares(out);  // only this process writes to it
}

double add_in(std::span<float> sum, std::span<const float> in, float weight) {
  DROVER_CHECK(in.size() == sum.size());
  SquareSum squares;
  if (!add_in_loop(sum.data(), in.data(), weight, sum.size(), squares.lanes.data())) return kNaN;
  const double quick = squares.total();
  return std::isfinite(quick) ? quick : sum_of_squares(in);
}

void move_towards(std::span<float> follower, std::span<const float> leader, float share) {
  DROVER_CHECK(leader.size() == follower.size());
  move_towards_loop(follower.data(), leader.data(), share, follower.size());
}

}  // namespace drover

// Vector loops over floats. Each uses the widest instructions of the machine, and gives bitwise the
// same results with any instruction set.
//
// For this, each element is computed by IEEE additions, multiplications, divisions and square roots
// that are never reassociated and never contracted into fused multiply-adds. Files with such loops
// must be compiled with DROVER_KERNEL's options, see below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>  // also defines __GLIBC__
#include <span>

// Compiles a function once for each of three levels of x86-64. The dynamic linker selects one when
// the program starts. Empty if that is not possible: with clang, on other architectures, with C
// libraries without ifunc, and with sanitizers, whose runtime is not initialised at that time.
//
// A source file that uses it needs, in its CMakeLists.txt (COMPILE_OPTIONS, so that they come
// last):
//   -O3                  vectorise in every build type; unoptimised kernels would dominate a run
//   -ffp-contract=off    no fused multiply-add, which only some processors have
//   -fno-math-errno      lets sqrt be one instruction
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DROVER_KERNEL __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define DROVER_KERNEL
#endif

namespace drover {

// REQUIRES (all functions): spans have equal sizes, and the output does not overlap an input
// (except where an element is updated in place).

// Whether no value is NaN or infinite.
bool all_finite(std::span<const float> values);

// The sum of the squares. Finite for all finite values; NaN if and only if a value is NaN or
// infinite. As fast as all_finite().
double sum_of_squares(std::span<const float> values);

// sum_i = sum_i + weight * in_i
void add_scaled(std::span<float> sum, std::span<const float> in, float weight);

// out_i = a_i + weight * b_i
void set_sum(std::span<float> out, std::span<const float> a, std::span<const float> b,
             float weight);

// A sum of squares that is accumulated over several calls, in lanes that only total() adds up.
struct SquareSum {
  static constexpr size_t kLanes = 16;
  alignas(64) std::array<double, kLanes> lanes{};

  // Not finite if a value was not finite, or if the squares overflowed.
  double total() const;
};

// out_i = factor * in_i
void set_scaled(std::span<float> out, std::span<const float> in, float factor);

// The same, and adds the squares of the written values to `squares`. REQUIRES: at most kScaledMax
// values.
void set_scaled(std::span<float> out, std::span<const float> in, float factor, SquareSum& squares);
inline constexpr size_t kScaledMax = 4096;

// Copy or add an input that another process may still write to, in one pass. Both return the sum of
// the squares of the input, or NaN if a written value is NaN or infinite. They check the written
// values, not the input, so that a concurrent write cannot bypass the check.

// out_i = in_i
double take_in(std::span<float> out, std::span<const float> in);
// sum_i = sum_i + weight * in_i, except that elements whose result would not be finite are left
// unchanged. In that case it returns NaN, and the sum includes a part of `in`.
double add_in(std::span<float> sum, std::span<const float> in, float weight);

// follower_i = follower_i + share * (leader_i - follower_i)
void move_towards(std::span<float> follower, std::span<const float> leader, float share);

}  // namespace drover

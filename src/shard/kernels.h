// Vector loops over floats: each runs with the widest instructions of the machine, and gives the
// same bits with all of them.
//
// Same bits: every element is computed on its own from IEEE additions, multiplications, divisions
// and square roots, never reassociated and never contracted into fused multiply-adds. The files
// that hold such loops must therefore be compiled with DROVER_KERNEL's options, see below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>  // also tells whether the C library is glibc
#include <span>

// Put before a function to compile it once for each of three generations of x86-64; the dynamic
// linker picks one when the program starts. Empty where that is not possible: clang, other
// machines, C libraries without ifunc, and under sanitizers, whose runtime is not up yet when the
// picking is done.
//
// A source file that uses it needs, in its CMakeLists.txt (COMPILE_OPTIONS, so that they come
// last):
//   -O3                  vectorise in every build type; unoptimised kernels would dominate a run
//   -ffp-contract=off    no fused multiply-add, which only some machines have
//   -fno-math-errno      lets sqrt be one instruction
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DROVER_KERNEL __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define DROVER_KERNEL
#endif

namespace drover {

// In all of these, spans have equal sizes, and what is written overlaps nothing that is read.

// Whether no value is NaN or infinite.
bool all_finite(std::span<const float> values);

// The sum of the squares, finite for any finite values; NaN exactly if one of them is NaN or
// infinite. As fast as all_finite().
double sum_of_squares(std::span<const float> values);

// sum_i = sum_i + weight * in_i
void add_scaled(std::span<float> sum, std::span<const float> in, float weight);

// out_i = a_i + weight * b_i
void set_sum(std::span<float> out, std::span<const float> a, std::span<const float> b,
             float weight);

// A sum of squares that is made piece by piece. In lanes, which no piece has to add up.
struct SquareSum {
  static constexpr size_t kLanes = 16;
  alignas(64) std::array<double, kLanes> lanes{};

  // Not finite if a value was not, and also if squares overflowed.
  double total() const;
};

// out_i = factor * in_i
void set_scaled(std::span<float> out, std::span<const float> in, float factor);

// The same; adds the squares of what it writes to `squares`. REQUIRES: at most kScaledMax values.
void set_scaled(std::span<float> out, std::span<const float> in, float factor, SquareSum& squares);
inline constexpr size_t kScaledMax = 4096;

// The ways into a sum for what another may still write to, each in one pass. Both tell the sum of
// the squares of what came in, or NaN if something that was written is NaN or infinite: what is
// checked is what was written, so that whoever can still write to what came in cannot slip anything
// past.

// out_i = in_i
double take_in(std::span<float> out, std::span<const float> in);
// sum_i = sum_i + weight * in_i, but what would not be finite is left as it is: then NaN is told,
// and the sum has a part of `in`.
double add_in(std::span<float> sum, std::span<const float> in, float weight);

// follower_i = follower_i + share * (leader_i - follower_i)
void move_towards(std::span<float> follower, std::span<const float> leader, float share);

}  // namespace drover

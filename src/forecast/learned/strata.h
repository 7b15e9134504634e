// Strata: stratified uniform numbers for the samples of a forecast.
//
// [0, 1) is divided into 2^bits equal strata, where 2^bits is the number of samples rounded up to a
// power of two. Each of the numbers u_k of a column (a worker, or a dimension of the state) lies in
// a different stratum, in a random order per column. So each column covers its distribution evenly,
// and the columns are independent within a sample.
#pragma once

#include <bit>
#include <cstdint>

#include "forecast/sampling.h"

namespace drover {

inline constexpr uint32_t kMostSamples = 1U << 16;

// A permutation of 0..2^bits-1: each operation of stratum_of() is invertible, so no two k get the
// same stratum. It uses 16-bit arithmetic, so that many columns fit into a vector register.
struct Order {
  uint16_t flip = 0;
  uint16_t first_odd = 1;
  uint16_t second_odd = 1;
  uint16_t turn = 0;
  float jitter = 0.5F;  // in (0, 1): position in the stratum
};

inline uint32_t strata_bits(uint32_t samples) {
  return static_cast<uint32_t>(std::bit_width(samples - 1));
}

inline uint16_t stratum_of(uint16_t k, uint16_t flip, uint16_t first_odd, uint16_t second_odd,
                           uint16_t turn, uint32_t bits) {
  const auto mask = static_cast<uint16_t>((1U << bits) - 1U);
  const auto half = static_cast<uint16_t>((bits + 1) / 2);
  auto at = static_cast<uint16_t>((k ^ flip) & mask);
  // Mix the lower half into the upper half, ...
  at = static_cast<uint16_t>(uint32_t{at} * first_odd);
  at = static_cast<uint16_t>(at & mask);
  // ... then the upper half into the lower half, and once more.
  at = static_cast<uint16_t>(at ^ (at >> half));
  at = static_cast<uint16_t>(uint32_t{at} * second_odd);
  return static_cast<uint16_t>((at + turn) & mask);
}

// u_k of a column. REQUIRES: k < samples <= kMostSamples, bits = strata_bits(samples).
inline float uniform(const Order& order, uint32_t k, uint32_t bits) {
  const uint16_t stratum = stratum_of(static_cast<uint16_t>(k), order.flip, order.first_odd,
                                      order.second_odd, order.turn, bits);
  return (static_cast<float>(stratum) + order.jitter) / static_cast<float>(1U << bits);
}

// The order of a column, from two draws.
inline Order draw_order(DrawStream draws) {
  const uint64_t bits = draws.next();
  const auto part = [&](unsigned at) { return static_cast<uint16_t>(bits >> (16 * at)); };
  return {.flip = part(0),
          .first_odd = static_cast<uint16_t>(part(1) | 1U),
          .second_odd = static_cast<uint16_t>(part(2) | 1U),
          .turn = part(3),
          .jitter = (static_cast<float>(draws.next() >> 48) + 0.5F) * 0x1.0p-16F};
}

// The orders for a forecast of a step: of each worker, and of each column of the state's random
// numbers.
inline Order worker_order(uint64_t seed, Step step, WorkerId worker) {
  return draw_order(forecast_draws(seed, step, worker, 10));
}
inline Order state_order(uint64_t seed, Step step, uint32_t column) {
  return draw_order(forecast_draws(seed, step, column, 11));
}

}  // namespace drover

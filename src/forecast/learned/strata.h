// Strata: uniform numbers for the samples of a forecast, spread evenly over the samples.
//
// Of `samples` numbers u_k, no two fall into the same of 2^bits equal parts of [0, 1), where 2^bits
// is the next power of two; which one falls into which is a random order, for every column (a
// worker, or a dimension of the state) its own. So each column alone is known as well as it can be
// from so many samples, and within a sample the columns are independent.
#pragma once

#include <bit>
#include <cstdint>

#include "forecast/sampling.h"

namespace drover {

inline constexpr uint32_t kMostSamples = 1U << 16;

// An order of 0..2^bits-1: every step of stratum_of() can be undone, so no two k meet. Arithmetic
// on 16 bits, so that many columns fit a vector.
struct Order {
  uint16_t flip = 0;
  uint16_t first_odd = 1;
  uint16_t second_odd = 1;
  uint16_t turn = 0;
  float jitter = 0.5F;  // in (0, 1): where in the stratum
};

inline uint32_t strata_bits(uint32_t samples) {
  return static_cast<uint32_t>(std::bit_width(samples - 1));
}

inline uint16_t stratum_of(uint16_t k, uint16_t flip, uint16_t first_odd, uint16_t second_odd,
                           uint16_t turn, uint32_t bits) {
  const auto mask = static_cast<uint16_t>((1U << bits) - 1U);
  const auto half = static_cast<uint16_t>((bits + 1) / 2);
  auto at = static_cast<uint16_t>((k ^ flip) & mask);
  // The upper half gets to know the lower, ...
  at = static_cast<uint16_t>(uint32_t{at} * first_odd);
  at = static_cast<uint16_t>(at & mask);
  // ... the lower half the upper, and once more.
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

// The order of a column, from two draws of its own.
inline Order draw_order(DrawStream draws) {
  const uint64_t bits = draws.next();
  const auto part = [&](unsigned at) { return static_cast<uint16_t>(bits >> (16 * at)); };
  return {.flip = part(0),
          .first_odd = static_cast<uint16_t>(part(1) | 1U),
          .second_odd = static_cast<uint16_t>(part(2) | 1U),
          .turn = part(3),
          .jitter = (static_cast<float>(draws.next() >> 48) + 0.5F) * 0x1.0p-16F};
}

// What a forecast of a step draws from, for each worker and for each column of the state's chance.
inline Order worker_order(uint64_t seed, Step step, WorkerId worker) {
  return draw_order(forecast_draws(seed, step, worker, 10));
}
inline Order state_order(uint64_t seed, Step step, uint32_t column) {
  return draw_order(forecast_draws(seed, step, column, 11));
}

}  // namespace drover

// Random draws without state: the same key always gives the same draw.
//
// Every random decision of a run is a function of the seed and a purpose. It does not depend on the
// order of the calls, so runs are repeatable and a simulation can draw in any order.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace drover {

// 64 well-mixed bits of `key`: SplitMix64's finaliser.
constexpr uint64_t mix_bits(uint64_t key) {
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
  return key ^ (key >> 31);
}

// One draw for a tuple of numbers, e.g. draw({seed, purpose, step, worker}).
constexpr uint64_t draw(std::initializer_list<uint64_t> key) {
  uint64_t bits = 0x243f6a8885a308d3ULL;
  for (const uint64_t part : key) bits = mix_bits(bits ^ mix_bits(part));
  return bits;
}

// Uniform in [0, 1), from the upper 53 bits.
constexpr double unit_interval(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

// The purpose of a draw: the first part of a key after the seed, so that two uses never share
// draws.
enum class Purpose : uint64_t {
  kSamples = 1,
  kSlowness = 2,
  kParameters = 3,
  kGeneratedData = 4,
  kRunId = 5,
  kForecast = 6,    // samples of predicted run-times
  kRunTimes = 7,    // run-times of simulated workers
  kNetwork = 8,     // a simulated network: delays, losses
  kFaults = 9,      // faults of a simulated cluster
  kProbes = 10,     // which stragglers finish although their step has closed
  kPartition = 11,  // assignment of samples to workers, where each has its own part
  kShares = 12,     // perturbation of mini-batch sizes, to measure their effect
  kBootstrap = 13,  // resampling of the cells of an experiment
};

// A random permutation of 0..size-1 with random access: each element is computed by itself (a
// Feistel network on the next power of four, applied until the value is less than `size`).
class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(uint64_t size, uint64_t key);
  // REQUIRES: index < size.
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t encrypt(uint64_t value) const;

  uint64_t size_;
  uint64_t key_;
  unsigned half_bits_;
};

// The index of the sample at `position` of the run's infinite stream of samples. Each epoch of
// `size` positions has every sample exactly once, in an order that depends on the seed and the
// epoch. REQUIRES: size >= 1.
uint64_t sample_at(uint64_t seed, uint64_t size, uint64_t position);

}  // namespace drover

// Random draws of forecasters: streams of random numbers, and the number of samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/ids.h"
#include "core/random_draw.h"

namespace drover {

// SplitMix64 from a key: many draws for one purpose, cheaper than a key each.
class DrawStream {
 public:
  explicit DrawStream(uint64_t key) : state_(key) {}
  uint64_t next() {
    const uint64_t bits = mix_bits(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return bits;
  }
  double unit() { return unit_interval(next()); }
  // Uniform in 0..size-1, uneven by less than size / 2^32. REQUIRES: size >= 1.
  uint32_t below(uint32_t size) {
    return static_cast<uint32_t>(((next() >> 32) * uint64_t{size}) >> 32);
  }
  template <typename T>
  void shuffle(std::span<T> items) {
    for (auto left = static_cast<uint32_t>(items.size()); left > 1; --left) {
      std::swap(items[left - 1], items[below(left)]);
    }
  }

 private:
  uint64_t state_;
};

// Draws for one worker in one step. `use` separates independent purposes; 0 is the forecast itself.
inline DrawStream forecast_draws(uint64_t seed, Step step, WorkerId worker, uint64_t use = 0) {
  return DrawStream(draw({seed, static_cast<uint64_t>(Purpose::kForecast), step, worker, use}));
}

// Few enough that a decision for thousands of workers takes milliseconds, and enough for a good
// decision: with 512 instead of 128 samples, replays of six recordings gain less than 0.1 % and
// take 3.5 times as long. Many workers need fewer samples, because each sample averages over them.
inline uint32_t sample_count(size_t workers) {
  return static_cast<uint32_t>(std::clamp<size_t>(100'000 / std::max<size_t>(1, workers), 64, 128));
}

// The same for the learned model, whose samples are stratified in powers of two. Compared with 1000
// samples, decisions lose less than 0.05 % of the expected throughput on average, on random models
// with light tails, heavy tails, and states that affect large parts of the cluster
// (bench/sample_loss.cc).
inline uint32_t learned_samples(size_t workers) {
  if (workers <= 512) return 128;
  return workers <= 4096 ? 64 : 32;
}

}  // namespace drover

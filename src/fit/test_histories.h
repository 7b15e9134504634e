// Histories of synthetic clusters, for tests of fitting.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random_draw.h"
#include "forecast/learned/history.h"

namespace drover {

inline PastTime arrived(double log_time) {
  const auto value = static_cast<float>(log_time);
  return {value, value, Known::kArrived};
}

// A standard normal draw.
inline double normal_draw(std::initializer_list<uint64_t> key) {
  const uint64_t bits = draw(key);
  return std::sqrt(-2.0 * std::log1p(-unit_interval(bits))) *
         std::cos(2.0 * std::numbers::pi * unit_interval(mix_bits(bits)));
}

// Workers with individual speeds, a state of the cluster that shifts all of them, and noise.
inline History wavy_history(uint32_t workers, size_t steps, uint64_t seed) {
  History history;
  double state = 0.0;
  for (size_t t = 0; t < steps; ++t) {
    state = 0.9 * state + 0.1 * normal_draw({seed, 1, t});
    std::vector<PastTime> row;
    for (uint64_t i = 0; i < workers; ++i) {
      const double own = 0.3 * normal_draw({seed, 2, i});
      row.push_back(arrived(own + state + 0.05 * normal_draw({seed, 3, t, i})));
    }
    history.add(t, row);
  }
  return history;
}

// The history of a run that waits for half of the workers: the others are censored at the time of
// the last arrival. Log times have mean 0 and deviation 0.3. Imputed values differ from the true
// ones. One worker is absent in every seventh step.
inline History halved_history(uint32_t workers, size_t steps, uint64_t seed) {
  History history;
  for (size_t t = 0; t < steps; ++t) {
    std::vector<double> times;
    for (uint64_t i = 0; i < workers; ++i) times.push_back(0.3 * normal_draw({seed, 4, t, i}));
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    const double bound = sorted[workers / 2 - 1];
    std::vector<PastTime> row;
    for (uint64_t i = 0; i < workers; ++i) {
      const double drawn = bound + 0.3 * std::abs(normal_draw({seed, 5, t, i}));
      row.push_back(times[i] <= bound ? arrived(times[i])
                                      : PastTime{static_cast<float>(drawn),
                                                 static_cast<float>(bound), Known::kLonger});
    }
    if (t % 7 == 3) row[(t / 7) % workers] = {};
    history.add(t, row);
  }
  return history;
}

}  // namespace drover

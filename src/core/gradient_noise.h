// Gradient noise: estimates signal and noise of a step from its gradients.
//
// Let G be the true gradient and Sigma the covariance of one sample's. Worker i sends g_i, the mean
// over m_i samples, so E[g_i] = G and E|g_i|^2 = |G|^2 + tr(Sigma) / m_i. With c gradients,
// M = sum of m_i, and gbar = sum (m_i / M) g_i, the mean over all M samples:
//
//   A = sum (m_i / M) |g_i|^2    E[A] = |G|^2 + sum (m_i / M) tr(Sigma) / m_i
//                                     = |G|^2 + tr(Sigma) c / M
//   B = |gbar|^2                 E[B] = |G|^2 + tr(Sigma) / M
//
// These are two equations for two unknowns, for any m_i, if c >= 2:
//
//   noise  = (A - B) M / (c - 1)   estimates tr(Sigma), without bias
//   signal = B - noise / M         estimates |G|^2, without bias, so it may be negative
//
// Both are sums over parameters, so the values of blocks and of shards can be added.
//
// phi = tr(Sigma) / |G|^2 is the noise scale, in samples: with M = phi, noise is half of a step's
// squared length. The estimate of one step is a ratio of two noisy numbers, so both are smoothed
// over steps first.
#pragma once

#include <cstdint>

#include "core/checkpoint_part.h"

namespace drover {

struct NoiseEstimate {
  double signal = 0.0;
  double noise = 0.0;

  NoiseEstimate& operator+=(const NoiseEstimate& other) {
    signal += other.signal;
    noise += other.noise;
    return *this;
  }
};

// `weighted_squares` is M A, the sum of m_i |g_i|^2; `mean_square` is B. NaN if there are fewer
// than two gradients, or if squares overflow.
NoiseEstimate estimate_noise(double weighted_squares, double mean_square, uint64_t samples,
                             uint32_t gradients);

// The noise scale of a run: smoothed noise divided by smoothed signal. Both are exponential
// averages with the same half-life, so the ratio needs no bias correction.
class NoiseScale {
 public:
  static constexpr double kHalfLife = 20.0;  // steps
  static constexpr uint64_t kStepsMin = 10;  // measured steps before value() is known

  // Ignores a step that could not be measured (NaN).
  void learn(const NoiseEstimate& step);
  // phi in samples; 0: not known yet, or the estimated signal is not positive.
  double value() const;

  SavedNoise save() const { return {smoothed_.signal, smoothed_.noise, steps_}; }
  void restore(const SavedNoise& saved) {
    smoothed_ = {saved.signal, saved.noise};
    steps_ = saved.steps;
  }

 private:
  NoiseEstimate smoothed_;
  uint64_t steps_ = 0;
};

}  // namespace drover

// Gradient noise: how much of a step's gradients is signal, measured on the gradients themselves.
//
// Let G be the true gradient and Sigma the covariance of one sample's. Worker i sends g_i, the mean
// over m_i samples, so E[g_i] = G and E|g_i|^2 = |G|^2 + tr(Sigma) / m_i. With c gradients,
// M = sum of m_i, and gbar = sum (m_i / M) g_i, the mean over all M samples:
//
//   A = sum (m_i / M) |g_i|^2    E[A] = |G|^2 + sum (m_i / M) tr(Sigma) / m_i
//                                     = |G|^2 + tr(Sigma) c / M
//   B = |gbar|^2                 E[B] = |G|^2 + tr(Sigma) / M
//
// Two equations for two unknowns, whatever the m_i, as soon as c >= 2:
//
//   noise  = (A - B) M / (c - 1)   estimates tr(Sigma), without bias
//   signal = B - noise / M         estimates |G|^2, without bias, so that it may be negative
//
// Both are sums over parameters, so those of blocks, and of shards, are added up.
//
// phi = tr(Sigma) / |G|^2 is the noise scale, in samples: with M = phi, half of what a step moves
// by is noise. A step's own estimate of it is a ratio of two noisy numbers, so both are smoothed
// first.
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

// `weighted_squares` is M A, the sum of m_i |g_i|^2; `mean_square` is B. NaN from fewer than two
// gradients, and from gradients so large that their squares overflow.
NoiseEstimate estimate_noise(double weighted_squares, double mean_square, uint64_t samples,
                             uint32_t gradients);

// The noise scale over the steps of a run: smoothed noise over smoothed signal. Weights fade with
// the same half-life in both, so that the ratio needs no correction for its beginning.
class NoiseScale {
 public:
  static constexpr double kHalfLife = 20.0;  // steps
  static constexpr uint64_t kStepsMin = 10;  // of which less is known, it is not told

  // A step that could not be measured (NaN) is passed over.
  void learn(const NoiseEstimate& step);
  // phi in samples; 0: not known yet, or the signal is lost in the noise.
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

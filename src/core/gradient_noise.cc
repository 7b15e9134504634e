#include "core/gradient_noise.h"

#include <cmath>
#include <limits>

namespace drover {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// 2^(-1/20) as a literal, since exp2() differs between C libraries.
constexpr double kFading = 0.9659363289248456;
static_assert(NoiseScale::kHalfLife == 20.0);

}  // namespace

NoiseEstimate estimate_noise(double weighted_squares, double mean_square, uint64_t samples,
                             uint32_t gradients) {
  if (gradients < 2) return {kUnknown, kUnknown};
  const auto all = static_cast<double>(samples);
  const double noise = (weighted_squares - all * mean_square) / static_cast<double>(gradients - 1);
  if (!std::isfinite(noise)) return {kUnknown, kUnknown};
  return {.signal = mean_square - noise / all, .noise = noise};
}

void NoiseScale::learn(const NoiseEstimate& step) {
  if (!std::isfinite(step.signal) || !std::isfinite(step.noise)) return;
  smoothed_ = {.signal = kFading * smoothed_.signal + step.signal,
               .noise = kFading * smoothed_.noise + step.noise};
  ++steps_;
}

double NoiseScale::value() const {
  if (steps_ < kStepsMin || !(smoothed_.signal > 0.0) || !(smoothed_.noise > 0.0)) return 0.0;
  const double scale = smoothed_.noise / smoothed_.signal;
  return std::isfinite(scale) ? scale : 0.0;
}

}  // namespace drover

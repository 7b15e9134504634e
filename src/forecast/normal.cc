#include "forecast/normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace drover {
namespace {

// Beyond this, the tail comes from its asymptotic series, well before erfc underflows at 38.
constexpr double kFarOut = 25.0;

// tail(z) = density(z) / z * series: 1 - 1/z^2 + 3/z^4 - 15/z^6 + ...
double tail_series(double z) {
  const double inverse = 1.0 / (z * z);
  return 1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse));
}

}  // namespace

double normal_density(double z) {
  static const double scale = 1.0 / std::sqrt(2.0 * std::numbers::pi);
  return scale * std::exp(-0.5 * z * z);
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double normal_hazard(double z) {
  if (z > kFarOut) return z / tail_series(z);
  return normal_density(z) / normal_cdf(-z);
}

double log_normal_tail(double z) {
  if (z > kFarOut) {
    return -0.5 * z * z - std::log(z * std::sqrt(2.0 * std::numbers::pi)) +
           std::log(tail_series(z));
  }
  return std::log(normal_cdf(-z));
}

double normal_quantile(double p) {
  DROVER_CHECK(p > 0.0);
  DROVER_CHECK(p < 1.0);
  // Uses the left half by symmetry, where p keeps all its digits.
  if (p > 0.5) return -normal_quantile(1.0 - p);
  // A start within 5e-4 (Hastings' rational approximation, Abramowitz & Stegun 26.2.23) ...
  const double t = std::sqrt(-2.0 * std::log(p));
  double z = (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
             t;
  // ... and Halley's method on cdf(z) - p, which triples the digits each time:
  //   f/f' = (cdf - p) / density,  f''/f' = -z.
  for (int turn = 0; turn < 2; ++turn) {
    const double ratio = (normal_cdf(z) - p) / normal_density(z);
    z -= ratio / (1.0 + 0.5 * z * ratio);
  }
  return z;
}

double expected_normal_order_statistic(uint32_t j, uint32_t n) {
  DROVER_CHECK(1 <= j);
  DROVER_CHECK(j <= n);
  using std::numbers::pi;
  return normal_quantile((j - pi / 8.0) / (n - pi / 4.0 + 1.0));
}

}  // namespace drover

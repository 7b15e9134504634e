#include "forecast/censored_normal.h"

#include <algorithm>
#include <cmath>

#include "forecast/normal.h"

namespace drover {
namespace {

// With theta = mean / deviation and tau = 1 / deviation the log-likelihood
//   l(theta, tau) = sum_known [ log tau - (tau x - theta)^2 / 2 ] + sum_cut log Q(tau b - theta)
// is concave (Olsen 1978), so Newton's method with a line search finds the one maximum.
struct Point {
  double theta = 0.0;
  double tau = 1.0;
};

// Sums over the known values, which are shifted and scaled to order one.
struct Sums {
  double count = 0.0;
  double mean = 0.0;
  double variance = 0.0;
};

double likelihood(const Sums& known, std::span<const Measured> data, double origin, double unit,
                  Point at) {
  // sum (tau x - theta)^2 = n (tau^2 variance + (tau mean - theta)^2)
  const double shift = at.tau * known.mean - at.theta;
  double sum =
      known.count * (std::log(at.tau) - 0.5 * (at.tau * at.tau * known.variance + shift * shift));
  for (const Measured& each : data) {
    if (!each.censored) continue;
    sum += each.count * log_normal_tail(at.tau * (each.value - origin) / unit - at.theta);
  }
  return sum;
}

}  // namespace

std::optional<NormalFit> fit_censored_normal(std::span<const Measured> data) {
  Sums known;
  double lowest = 0.0;
  double highest = 0.0;
  bool any_cut = false;
  for (const Measured& each : data) {
    any_cut = any_cut || each.censored;
    if (each.censored) continue;
    if (known.count == 0.0) lowest = highest = each.value;
    lowest = std::min(lowest, each.value);
    highest = std::max(highest, each.value);
    known.count += each.count;
    known.mean += (each.value - known.mean) * each.count / known.count;
  }
  if (known.count == 0.0) return std::nullopt;
  for (const Measured& each : data) {
    if (each.censored) highest = std::max(highest, each.value);
  }

  const double origin = known.mean;
  const double unit = highest - lowest;
  if (unit <= 1e-9 * std::max(std::abs(highest), std::abs(lowest))) return NormalFit{origin, 0.0};
  known.mean = 0.0;
  for (const Measured& each : data) {
    const double x = (each.value - origin) / unit;
    if (!each.censored) known.variance += x * x * each.count / known.count;
  }
  if (!any_cut) return NormalFit{origin, unit * std::sqrt(known.variance)};

  // A deviation this much smaller than the range of the data counts as zero. If all known values
  // are equal and no bound lies above them, the likelihood grows without limit in this direction.
  constexpr double kMaxTau = 1e6;
  Point at{0.0, 1.0 / std::sqrt(known.variance + 0.01)};
  double best = likelihood(known, data, origin, unit, at);
  for (int turn = 0; turn < 100 && at.tau < kMaxTau; ++turn) {
    // Gradient and the negative of the Hessian.
    const double shift = at.tau * known.mean - at.theta;
    double by_theta = known.count * shift;
    double by_tau = known.count * (1.0 / at.tau - at.tau * known.variance - known.mean * shift);
    double theta_theta = known.count;
    double theta_tau = -known.count * known.mean;
    double tau_tau =
        known.count * (1.0 / (at.tau * at.tau) + known.variance + known.mean * known.mean);
    for (const Measured& each : data) {
      if (!each.censored) continue;
      const double bound = (each.value - origin) / unit;
      const double z = at.tau * bound - at.theta;
      const double hazard = normal_hazard(z);                     // -d log Q / dz
      const double slope = std::max(0.0, hazard * (hazard - z));  // its derivative, 0 to 1
      by_theta += each.count * hazard;
      by_tau -= each.count * hazard * bound;
      theta_theta += each.count * slope;
      theta_tau -= each.count * slope * bound;
      tau_tau += each.count * slope * bound * bound;
    }
    const double determinant = theta_theta * tau_tau - theta_tau * theta_tau;
    const Point step{(tau_tau * by_theta - theta_tau * by_tau) / determinant,
                     (theta_theta * by_tau - theta_tau * by_theta) / determinant};
    const double gain = step.theta * by_theta + step.tau * by_tau;  // to first order
    if (!(gain > 1e-12 * (1.0 + std::abs(best)))) break;

    double length = 1.0;
    bool better = false;
    for (int halving = 0; halving < 60 && !better; ++halving, length *= 0.5) {
      const Point there{at.theta + length * step.theta, at.tau + length * step.tau};
      if (there.tau <= 0.0) continue;
      const double value = likelihood(known, data, origin, unit, there);
      if (!(value > best)) continue;
      better = true;
      at = there;
      best = value;
    }
    if (!better) break;
  }
  if (at.tau >= kMaxTau) return NormalFit{origin + unit * at.theta / at.tau, 0.0};
  return NormalFit{origin + unit * at.theta / at.tau, unit / at.tau};
}

}  // namespace drover

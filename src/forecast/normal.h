// The normal distribution: density, tails, quantiles, and expected order statistics.
#pragma once

#include <cstdint>

namespace drover {

double normal_density(double z);
// P(Z <= z), accurate to a few units in the last place in the left tail too.
double normal_cdf(double z);
// The z with normal_cdf(z) == p. REQUIRES: 0 < p < 1.
double normal_quantile(double p);

// density / right tail, which is the mean of a standard normal known to exceed z. Finite in the far
// tail, where both underflow. For the likelihood of censored run-times.
double normal_hazard(double z);
// log P(Z > z), finite for every finite z.
double log_normal_tail(double z);

// The expectation of the j-th smallest of n standard normal draws, after Elfving (1947):
//   E[z_(j)] ~= Phi^-1( (j - pi/8) / (n - pi/4 + 1) ).
// REQUIRES: 1 <= j <= n.
double expected_normal_order_statistic(uint32_t j, uint32_t n);

}  // namespace drover

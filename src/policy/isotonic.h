// Isotonic regression: the ascending curve nearest to some noisy values.
#pragma once

#include <span>

namespace drover {

// Replaces `values` by the non-decreasing sequence f that minimises sum_i w_i (values_i - f_i)^2:
// neighbours in the wrong order are pooled into their weighted mean until none are left.
// REQUIRES: as many weights as values, all positive.
void make_ascending(std::span<double> values, std::span<const double> weights);

}  // namespace drover

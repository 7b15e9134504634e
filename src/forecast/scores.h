// Scores: how well samples predicted an observation. Smaller is better.
#pragma once

#include <span>

namespace drover {

// The continuous ranked probability score of a forecast given by samples, on the logarithmic scale:
//   CRPS = E|X - y| - E|X - X'| / 2,  X, X' independent draws, all as logs,
// without bias from the number of samples. The score is proper: the true distribution has the best
// expected score. Unlike the likelihood of samples, it is finite where no sample is near. If
// `censored`, `observed` is a lower bound, and samples beyond it count as equal to it.
// REQUIRES: at least two samples, ascending, all positive; observed > 0.
double crps(std::span<const float> ascending_samples, double observed, bool censored);

}  // namespace drover

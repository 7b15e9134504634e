// Scores: how well samples foretold what happened. Smaller is better.
#pragma once

#include <span>

namespace drover {

// The continuous ranked probability score of a forecast given by samples, on the logarithmic scale:
//   CRPS = E|X - y| - E|X - X'| / 2,  X, X' independent draws, all as logs,
// without bias from the number of samples. It is proper (nobody gains by forecasting anything but
// what he believes), in the unit of what is forecast, and finite also where no sample is near; the
// likelihood of samples is not. If only a bound is known, all that lies beyond it counts as the
// bound: what cannot be told apart is not judged, and what is judged is judged the same.
// REQUIRES: at least two samples, ascending, all positive; observed > 0.
double crps(std::span<const float> ascending_samples, double observed, bool censored);

}  // namespace drover

// Means with confidence intervals, for experiments of a few seeds.
#pragma once

#include <optional>
#include <span>

namespace drover {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// REQUIRES: values is not empty.
double mean_of(std::span<const double> values);

// The 95 % bootstrap interval of the mean: the 2.5 and 97.5 percentiles of the means of many
// resamples, each of values.size() values drawn with replacement. Deterministic. Absent for fewer
// than two values.
std::optional<Interval> bootstrap_mean(std::span<const double> values);

}  // namespace drover

// Means with intervals that say how sure they are, for experiments of a few seeds.
#pragma once

#include <optional>
#include <span>

namespace drover {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// REQUIRES: there are values.
double mean_of(std::span<const double> values);

// The 95 % bootstrap interval of the mean: values are drawn with replacement, as many as there are,
// many times over; of the means of those draws the 2.5 and the 97.5 percentile. Equal values in
// equal order give equal intervals. Absent for fewer than two values, which say nothing of chance.
std::optional<Interval> bootstrap_mean(std::span<const double> values);

}  // namespace drover

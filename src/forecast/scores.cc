#include "forecast/scores.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace drover {

double crps(std::span<const float> ascending_samples, double observed, bool censored) {
  const auto count = static_cast<double>(ascending_samples.size());
  DROVER_CHECK(ascending_samples.size() >= 2);
  DROVER_CHECK(observed > 0.0);
  const double truth = std::log(observed);
  double distance = 0.0;
  double spread = 0.0;  // sum over pairs i < j of x_j - x_i
  double rank = 1.0 - count;
  for (const float sample : ascending_samples) {
    double value = std::log(static_cast<double>(sample));
    if (censored) value = std::min(value, truth);
    distance += std::abs(value - truth);
    spread += rank * value;
    rank += 2.0;
  }
  return distance / count - spread / (count * (count - 1.0));
}

}  // namespace drover

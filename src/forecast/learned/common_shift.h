// CommonShift: the deviations that all workers of a step have in common, to be added to forecasts
// that treat workers as independent.
//
// If all workers wait for the same disk or switch, all are late together. A forecast that draws
// each worker independently predicts that some worker is always fast. A time limit based on it
// would drop nearly all gradients of such a step. For each step, this class records the error of
// one early arrival on the logarithmic scale, and the variance that the forecast predicted for it.
// The difference between the two spreads is missing in the forecast. It is added to all workers of
// a sample alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "forecast/forecast.h"
#include "forecast/sampling.h"

namespace drover {

class CommonShift {
 public:
  // Records a step by one rank: the predicted samples of that arrival, and its actual time.
  void learn(std::span<const float> predicted, double happened);
  // The share of the observed deviations that the forecasts lack; 0 to 1.
  double missing() const;
  // Multiplies each of the rows begin..end-1 by a drawn factor.
  void apply(Forecast& forecast, uint32_t begin, uint32_t end, DrawStream draws) const;
  void forget() { count_ = next_ = 0; }

 private:
  static constexpr uint32_t kKept = 48;
  std::vector<double> off_ = std::vector<double>(kKept);       // ring of actual - predicted mean
  std::vector<double> expected_ = std::vector<double>(kKept);  // ring of predicted variances
  uint32_t count_ = 0;
  uint32_t next_ = 0;
};

}  // namespace drover

// CommonShift: how far whole steps were off what was foretold, to be added to forecasts that take
// workers for independent.
//
// When everybody waits for the same disk or switch, all are late together. A forecast that draws
// each worker by itself does not know this: it promises that somebody is always quick, and a time
// limit chosen by it would cut everybody off in such a step. From each step we keep how far an
// early arrival was off, on the logarithmic scale, and how far the forecast itself thought it
// might be; the difference between the two spreads is what is missing, and is added to all workers
// of a sample alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "forecast/forecast.h"
#include "forecast/sampling.h"

namespace drover {

class CommonShift {
 public:
  // What a step has shown at one rank: samples of that arrival, and the arrival.
  void learn(std::span<const float> foretold, double happened);
  // How much of the deviations seen is not in the forecast already; 0..1.
  double missing() const;
  // Multiplies the rows begin..end-1 of the forecast, each by a factor of its own.
  void apply(Forecast& forecast, uint32_t begin, uint32_t end, DrawStream draws) const;
  void forget() { count_ = next_ = 0; }

 private:
  static constexpr uint32_t kKept = 48;
  std::vector<double> off_ = std::vector<double>(kKept);       // a ring: happened - mean foretold
  std::vector<double> expected_ = std::vector<double>(kKept);  // variance foretold
  uint32_t count_ = 0;
  uint32_t next_ = 0;
};

}  // namespace drover

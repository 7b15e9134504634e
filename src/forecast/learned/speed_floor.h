// SpeedFloor: a forecast never goes below a worker's fastest observed time.
//
// Work takes a minimum time, but the smooth tail of a learned model extends below it. A predicted
// first arrival near zero would make a cutoff of one seem best.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "core/step_times.h"
#include "forecast/forecast.h"

namespace drover {

class SpeedFloor {
 public:
  // Each step multiplies the fastest times by this factor, so that they follow a worker whose speed
  // has changed permanently.
  static constexpr float kForgetting = 1.002F;

  // Reports a step that has ended. Censored run-times do not count.
  void learn(const StepTimes& times);

  // Raises each column to the fastest time of its worker, or to the fastest time of all workers if
  // this one never arrived. REQUIRES: column i of the forecast belongs to alive[i].
  void apply(std::span<const WorkerId> alive, Forecast& forecast);

 private:
  std::vector<float> fastest_;  // by worker; 0: never arrived
  float fastest_of_all_ = 0.0F;
  std::vector<float> floors_;  // of the workers in a forecast
};

}  // namespace drover

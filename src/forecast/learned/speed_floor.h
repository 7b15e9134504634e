// SpeedFloor: a forecast never goes below a worker's fastest observed time.
//
// Work has a least time it takes, which the smooth tail of a learned model does not know. A first
// arrival in next to no time would make it pay to drop all other workers.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "core/step_times.h"
#include "forecast/forecast.h"

namespace drover {

class SpeedFloor {
 public:
  // A worker's fastest time is forgotten by this factor a step, so that a worker that has become
  // faster or slower for good is not held to its past.
  static constexpr float kForgetting = 1.002F;

  // A step has ended. Only run-times that are known count, not those that were cut short.
  void learn(const StepTimes& times);

  // Raises each column to the fastest time of its worker, or, of a worker that has never arrived,
  // to the fastest of all. REQUIRES: column i of the forecast belongs to alive[i].
  void apply(std::span<const WorkerId> alive, Forecast& forecast);

 private:
  std::vector<float> fastest_;  // by worker; 0: none known
  float fastest_of_all_ = 0.0F;
  std::vector<float> floors_;  // of the workers in a forecast
};

}  // namespace drover

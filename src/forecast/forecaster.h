// Forecaster: learns from the record of steps, and forecasts the run-times of the next one.
//
// Forecasters are pure: no clock, no thread. Random draws depend only on a seed and the step
// (core/random_draw.h), so equal records give equal forecasts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/step_times.h"
#include "forecast/forecast.h"

namespace drover {

class Forecaster {
 public:
  virtual ~Forecaster() = default;

  // Reports what is known of a step when it ends. Steps come in order. The number of workers may
  // grow from step to step.
  virtual void learn(const StepTimes& times) = 0;

  // Reports the run-time of a worker that learn() reported as kLonger: its gradient came late.
  virtual void learn_late(Step step, WorkerId worker, double seconds) = 0;

  // Whether there is enough data to forecast the run-times of these workers.
  virtual bool ready(std::span<const WorkerId> alive) const = 0;

  // Samples of the run-times of `alive` in `step`. REQUIRES: ready(alive), alive is not empty.
  virtual void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) = 0;

  // Whether columns of a forecast belong to workers. If not, they are order statistics.
  virtual bool by_worker() const { return true; }

  // The data behind the last forecast in a few words, for a decision's reason: "last 20 steps, 3 %
  // of run-times cut short".
  virtual std::string basis() const = 0;

  // Whether a learned model is disabled at present, because other forecasters score better.
  virtual bool model_stale() const { return false; }
};

}  // namespace drover

// Forecaster: the record of steps in, a forecast of the next one out.
//
// Pure: no clock, no thread; chance is drawn from a seed and the step (core/random_draw.h), so
// equal records give equal forecasts.
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

  // A step has ended. Steps come in order; workers 0..times.seconds.size()-1, a number that may
  // grow from step to step.
  virtual void learn(const StepTimes& times) = 0;

  // The run-time of somebody that `learn` was told of as kLonger is known after all.
  virtual void learn_late(Step step, WorkerId worker, double seconds) = 0;

  // Whether enough was seen to forecast the run-times of these workers.
  virtual bool ready(std::span<const WorkerId> alive) const = 0;

  // Samples of the run-times of `alive` in `step`. REQUIRES: ready(alive), alive is not empty.
  virtual void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) = 0;

  // Whether columns of a forecast belong to workers. If not, they are order statistics.
  virtual bool by_worker() const { return true; }

  // What the forecast rests on, in a few words, for a decision's reason: "last 20 steps, 3 % of
  // run-times cut short".
  virtual std::string basis() const = 0;

  // Whether a learned model is disabled for now, since others forecast better.
  virtual bool model_stale() const { return false; }
};

}  // namespace drover

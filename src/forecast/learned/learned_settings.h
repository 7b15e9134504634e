// LearnedSettings: settings of all forecasters with a learned model.
#pragma once

#include <cstdint>
#include <memory>

#include "core/ids.h"
#include "forecast/learned/fitting.h"
#include "forecast/learned/model_fitting.h"
#include "forecast/learned/model_weights.h"

namespace drover {

struct LearnedSettings {
  uint64_t seed = 1;
  Step warmup = 20;                           // of the empirical forecaster
  std::shared_ptr<const ModelWeights> model;  // the initial model; null: none
  FittingSettings fitting = {};               // with the seed above
  std::unique_ptr<Fitter> fitter;             // null: no model is fitted
  uint32_t samples = 0;                       // per forecast; 0: learned_samples()
};

inline FittingSettings fitting_of(const LearnedSettings& settings) {
  FittingSettings fitting = settings.fitting;
  fitting.seed = settings.seed;
  return fitting;
}

}  // namespace drover

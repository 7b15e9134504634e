// LearnedSettings: what every forecaster with a learned model is given.
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
  std::shared_ptr<const ModelWeights> model;  // null: none to start with
  FittingSettings fitting = {};               // with the seed above
  std::unique_ptr<Fitter> fitter;             // null: no model is fitted
  uint32_t samples = 0;                       // of a forecast; 0: learned_samples()
};

inline FittingSettings fitting_of(const LearnedSettings& settings) {
  FittingSettings fitting = settings.fitting;
  fitting.seed = settings.seed;
  return fitting;
}

}  // namespace drover

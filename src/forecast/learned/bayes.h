// BayesForecaster: mixes the learned model of run-times with simpler forecasters, with weights by
// how well each predicted the last steps.
//
// The model is fitted during the run (ModelFitting). Judge scores the forecasters and disables a
// stale model. A forecast never goes below a worker's fastest observed time (SpeedFloor).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "forecast/ecdf.h"
#include "forecast/ewma.h"
#include "forecast/forecaster.h"
#include "forecast/learned/imputed_steps.h"
#include "forecast/learned/judge.h"
#include "forecast/learned/learned_model.h"
#include "forecast/learned/learned_settings.h"
#include "forecast/learned/model_fitting.h"
#include "forecast/learned/speed_floor.h"

namespace drover {

struct BayesSettings : LearnedSettings {
  bool prior = true;  // use the built-in model
};

class BayesForecaster : public Forecaster {
 public:
  // REQUIRES: neither the initial model nor fitted ones have Emission::kSorted.
  explicit BayesForecaster(BayesSettings settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  std::string basis() const override;
  bool model_stale() const override { return model_trouble_.empty() && judge_.is_stale(kModel); }

 private:
  // The built-in model, the one fitted to this cluster, and two simple forecasters.
  enum Candidate : size_t { kPrior, kModel, kEcdf, kEwma, kCandidates };

  void install(Candidate candidate, std::shared_ptr<const ModelWeights> weights);
  bool serves(size_t candidate, std::span<const WorkerId> alive) const;
  // The share of each candidate in a forecast; they sum to 1. REQUIRES: ready(alive).
  std::array<double, kCandidates> shares(std::span<const WorkerId> alive);
  void forecast_by(size_t candidate, Step step, std::span<const WorkerId> alive, uint32_t samples,
                   Forecast& out);

  const uint64_t seed_;
  const uint32_t samples_;
  EcdfForecaster ecdf_;
  EwmaForecaster ewma_;
  std::array<std::unique_ptr<LearnedModel>, 2> models_;  // by candidate; null: none yet
  ImputedSteps steps_;
  Judge judge_;
  SpeedFloor floor_;
  ModelFitting fitting_;
  std::array<uint32_t, kCandidates> rows_{};  // of the last forecast, by candidate
  std::string model_trouble_;                 // why that forecast could not use the model
  Forecast part_;
};

}  // namespace drover

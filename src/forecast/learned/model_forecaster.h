// ModelForecaster: a learned model as a forecaster, without mixing and without refitting, so that
// it can be compared with other forecasters.
#pragma once

#include <memory>

#include "forecast/forecaster.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/learned_model.h"

namespace drover {

class ModelForecaster : public Forecaster {
 public:
  // `samples` per forecast; 0: by the number of workers, see sample_count().
  ModelForecaster(std::shared_ptr<const ModelWeights> weights, uint64_t seed, uint32_t samples = 0);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  std::string basis() const override;

 private:
  LearnedModel model_;
  Imputer imputer_;
  const uint32_t samples_;
  Step learned_ = 0;
};

}  // namespace drover

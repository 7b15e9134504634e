// PublishedForecaster: the learned model as in the paper on Bayesian Distributed SGD. It is not
// mixed with other forecasters; an empirical one serves only until the first model is fitted. Fits
// treat imputed run-times as known.
#pragma once

#include <memory>
#include <string>

#include "forecast/ecdf.h"
#include "forecast/forecaster.h"
#include "forecast/learned/imputed_steps.h"
#include "forecast/learned/learned_model.h"
#include "forecast/learned/learned_settings.h"
#include "forecast/learned/model_fitting.h"

namespace drover {

struct PublishedSettings : LearnedSettings {
  Imputing imputing = Imputing::kTruncated;
};

class PublishedForecaster : public Forecaster {
 public:
  explicit PublishedForecaster(PublishedSettings settings);

  void learn(const StepTimes& times) override;
  void learn_late(Step step, WorkerId worker, double seconds) override;
  bool ready(std::span<const WorkerId> alive) const override;
  void forecast(Step step, std::span<const WorkerId> alive, Forecast& out) override;
  bool by_worker() const override { return emission_ != Emission::kSorted; }
  std::string basis() const override;

 private:
  enum class Source : uint8_t { kNone, kModel, kEcdf };
  void install(std::shared_ptr<const ModelWeights> weights);
  bool model_serves(std::span<const WorkerId> alive) const;

  const uint64_t seed_;
  const uint32_t samples_;
  const Emission emission_;
  EcdfForecaster ecdf_;
  std::unique_ptr<LearnedModel> model_;  // null: none yet
  ImputedSteps steps_;
  ModelFitting fitting_;
  Source source_ = Source::kNone;  // of the last forecast
  std::string model_trouble_;      // why that forecast could not use the model
};

}  // namespace drover

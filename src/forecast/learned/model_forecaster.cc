#include "forecast/learned/model_forecaster.h"

#include <cmath>

#include "core/check.h"
#include "forecast/run_time.h"
#include "forecast/sampling.h"

namespace drover {

ModelForecaster::ModelForecaster(std::shared_ptr<const ModelWeights> weights, uint64_t seed,
                                 uint32_t samples)
    : model_(std::move(weights), seed), imputer_(seed), samples_(samples) {}

void ModelForecaster::learn(const StepTimes& times) {
  model_.learn(times.step, imputer_.impute_step(times));
  ++learned_;
}

void ModelForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds)) return;
  imputer_.correct(step, worker, seconds);
  model_.correct(step, worker, std::log(to_run_time(seconds)));
}

bool ModelForecaster::ready(std::span<const WorkerId> alive) const {
  return learned_ > 0 && model_.incompatibility(alive).empty();
}

void ModelForecaster::forecast(Step step, std::span<const WorkerId> alive, Forecast& out) {
  DROVER_CHECK(ready(alive));
  model_.forecast(step, alive, samples_ > 0 ? samples_ : sample_count(alive.size()), out);
}

std::string ModelForecaster::basis() const {
  const ModelWeights& weights = model_.weights();
  return "a " + std::string(name_of(weights.shape.emission)) + " model fitted to " +
         std::to_string(weights.note.steps) + " steps";
}

}  // namespace drover

#include "forecast/learned/published.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/check.h"
#include "forecast/run_time.h"
#include "forecast/sampling.h"

namespace drover {
namespace {

FittingSettings as_published(const LearnedSettings& settings) {
  FittingSettings fitting = fitting_of(settings);
  fitting.believe_imputed = true;
  fitting.foresight = 0.0;
  return fitting;
}

}  // namespace

PublishedForecaster::PublishedForecaster(PublishedSettings settings)
    : seed_(settings.seed),
      samples_(settings.samples),
      emission_(settings.fitting.emission),
      ecdf_({.seed = settings.seed, .warmup = settings.warmup}),
      steps_(settings.seed, settings.imputing),
      fitting_(as_published(settings), std::move(settings.fitter)) {
  if (settings.model) install(settings.model);
}

void PublishedForecaster::install(std::shared_ptr<const ModelWeights> weights) {
  model_ = model_after(std::move(weights), seed_, steps_.history());
}

bool PublishedForecaster::model_serves(std::span<const WorkerId> alive) const {
  return model_ != nullptr && steps_.count() > 0 && model_->incompatibility(alive).empty();
}

bool PublishedForecaster::ready(std::span<const WorkerId> alive) const {
  return ecdf_.ready(alive) || model_serves(alive);
}

void PublishedForecaster::forecast(Step step, std::span<const WorkerId> alive, Forecast& out) {
  DROVER_CHECK(ready(alive));
  const uint32_t samples = samples_ > 0 ? samples_ : learned_samples(alive.size());
  source_ = model_serves(alive) ? Source::kModel : Source::kEcdf;
  if (source_ == Source::kModel) {
    model_->forecast(step, alive, samples, out);
  } else {
    ecdf_.forecast(step, alive, samples, out);
  }
  model_trouble_ = model_ ? model_->incompatibility(alive) : "";
  steps_.expect(alive, out, /*by_worker=*/!out.sorted);
}

void PublishedForecaster::learn(const StepTimes& times) {
  const std::span<const PastTime> row = steps_.add(times);
  if (model_) model_->learn(times.step, row);
  ecdf_.learn(times);
  if (auto weights = fitting_.poll(times.step)) install(std::move(weights));
  fitting_.begin_if_due(times.step, steps_.count(), steps_.history(),
                        model_ ? &model_->weights() : nullptr, /*stale=*/false);
}

void PublishedForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds)) return;
  ecdf_.learn_late(step, worker, seconds);
  const auto log_time = static_cast<float>(std::log(seconds));
  steps_.correct(step, worker, log_time);
  if (model_) model_->correct(step, worker, log_time);
}

std::string PublishedForecaster::basis() const {
  std::string text;
  if (source_ == Source::kModel)
    text = fmt::format("model 100 % (of {} steps)", model_->weights().note.steps);
  if (source_ == Source::kEcdf) text = "ecdf 100 %";
  if (!model_trouble_.empty()) text += "; " + model_trouble_;
  return text + fitting_.remark(model_ != nullptr) + steps_.cut_short_text();
}

}  // namespace drover

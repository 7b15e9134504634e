#include "forecast/learned/model_fitting.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace drover {
namespace {

// The maximum number of run-times in a fit; the minimum number of steps takes precedence.
constexpr size_t kFitCells = 400'000;
constexpr size_t kFitSteps = 64;

FittingSettings checked(FittingSettings settings) {
  if (settings.emission != Emission::kShared)
    settings.first_fit = std::max(settings.first_fit, kFirstPublishedFit);
  return settings;
}

}  // namespace

ModelFitting::ModelFitting(const FittingSettings& settings, std::unique_ptr<Fitter> fitter)
    : settings_(checked(settings)), fitter_(std::move(fitter)) {}

std::shared_ptr<const ModelWeights> ModelFitting::poll(Step now) {
  if (!fitter_) return nullptr;
  std::optional<Result<FitOutcome>> answer = fitter_->poll(now);
  if (!answer) return nullptr;
  if (!*answer) {
    trouble_ = answer->error().message;
    return nullptr;
  }
  trouble_.clear();
  return std::make_shared<ModelWeights>(std::move(answer->value().weights));
}

void ModelFitting::begin_if_due(Step now, uint64_t seen, const History& history,
                                const ModelWeights* model, bool stale) {
  if (!fitter_ || fitter_->busy() || seen < settings_.first_fit) return;
  const bool first = model == nullptr && fitted_on_ == 0;
  const auto grown =
      static_cast<uint64_t>(settings_.refit_growth * static_cast<double>(fitted_on_));
  const bool due = seen >= std::max(grown, fitted_on_ + 2 * kStepsBetweenFits);
  if (!first && !due && !(stale && seen >= fitted_on_ + kStepsBetweenFits)) return;
  fitted_on_ = seen;
  fitter_->begin(now, request(history, model));
}

FitRequest ModelFitting::request(const History& history, const ModelWeights* model) const {
  const size_t steps = history.steps();
  const size_t most = std::max<size_t>(kFitSteps, kFitCells / std::max(1U, history.workers()));
  auto part = std::make_shared<History>(history.part(steps - std::min(steps, most), steps));
  if (settings_.believe_imputed) part->believe_all();
  FitRequest request;
  request.shape = default_shape(settings_.emission, history.workers());
  request.history = std::move(part);
  request.settings.seed = settings_.seed;
  request.settings.iterations =
      model != nullptr ? settings_.refit_iterations : settings_.first_iterations;
  request.settings.foresight = settings_.foresight;
  if (model != nullptr && model->shape.emission == settings_.emission)
    request.start = std::make_shared<ModelWeights>(*model);
  return request;
}

std::string ModelFitting::remark(bool has_model) const {
  if (!trouble_.empty()) return "; model fit failed: " + trouble_;
  return has_model ? "" : "; no model yet";
}

}  // namespace drover

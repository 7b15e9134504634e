#include "forecast/learned/bayes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "forecast/learned/prior_model.h"
#include "forecast/run_time.h"
#include "forecast/sampling.h"

namespace drover {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"prior", "model", "ecdf", "ewma"};

}  // namespace

BayesForecaster::BayesForecaster(BayesSettings settings)
    : seed_(settings.seed),
      samples_(settings.samples),
      ecdf_({.seed = settings.seed, .warmup = settings.warmup}),
      ewma_({.seed = settings.seed, .warmup = settings.warmup}),
      steps_(settings.seed, Imputing::kTruncated),
      judge_(kCandidates, kEcdf, settings.seed),
      fitting_(fitting_of(settings), std::move(settings.fitter)) {
  DROVER_CHECK(settings.fitting.emission != Emission::kSorted);
  if (settings.prior) install(kPrior, prior_model());
  if (settings.model) install(kModel, settings.model);
}

void BayesForecaster::install(Candidate candidate, std::shared_ptr<const ModelWeights> weights) {
  DROVER_CHECK(weights->shape.emission != Emission::kSorted);
  models_[candidate] = model_after(std::move(weights), seed_, steps_.history());
  judge_.restart(candidate);
}

bool BayesForecaster::serves(size_t candidate, std::span<const WorkerId> alive) const {
  if (candidate == kEcdf || candidate == kEwma) return ecdf_.ready(alive);
  const auto& model = models_[candidate];
  return model != nullptr && steps_.count() > 0 && model->incompatibility(alive).empty();
}

bool BayesForecaster::ready(std::span<const WorkerId> alive) const {
  return ecdf_.ready(alive) || serves(kModel, alive);
}

void BayesForecaster::forecast_by(size_t candidate, Step step, std::span<const WorkerId> alive,
                                  uint32_t samples, Forecast& out) {
  if (candidate == kEcdf) return ecdf_.forecast(step, alive, samples, out);
  if (candidate == kEwma) return ewma_.forecast(step, alive, samples, out);
  models_[candidate]->forecast(step, alive, samples, out);
  floor_.apply(alive, out);
}

std::array<double, BayesForecaster::kCandidates> BayesForecaster::shares(
    std::span<const WorkerId> alive) {
  std::array<double, kCandidates> shares{};
  double sum = 0.0;
  if (ecdf_.ready(alive)) {
    const std::span<const double> weights = judge_.weights();
    for (size_t i = 0; i < kCandidates; ++i) {
      if (serves(i, alive) && !(i == kModel && judge_.is_stale(kModel))) shares[i] = weights[i];
      sum += shares[i];
    }
  }
  if (sum == 0.0) shares[serves(kModel, alive) ? kModel : kEcdf] = sum = 1.0;
  for (double& share : shares) share /= sum;
  return shares;
}

void BayesForecaster::forecast(Step step, std::span<const WorkerId> alive, Forecast& out) {
  DROVER_CHECK(ready(alive));
  const uint32_t samples = samples_ > 0 ? samples_ : learned_samples(alive.size());
  const bool judging = ecdf_.ready(alive);
  const std::array<double, kCandidates> share = shares(alive);
  // Rows are in proportion to the shares. Rounding the cumulated shares makes them add up.
  out.resize(samples, static_cast<uint32_t>(alive.size()));
  double cumulated = 0.0;
  uint32_t row = 0;
  for (size_t i = 0; i < kCandidates; ++i) {
    cumulated += share[i];
    const auto end = std::min(samples, static_cast<uint32_t>(std::lround(cumulated * samples)));
    rows_[i] = end - row;
    if (rows_[i] == 0) continue;
    forecast_by(i, step, alive, rows_[i], part_);
    std::copy(part_.times.begin(), part_.times.end(), out.row(row).begin());
    if (judging) judge_.adjust(i, step, out, row, end);
    row = end;
  }
  DROVER_CHECK(row == samples);
  model_trouble_ = models_[kModel] ? models_[kModel]->incompatibility(alive) : "";
  steps_.expect(alive, out, /*by_worker=*/true);
  const std::span<const WorkerId> judged =
      judge_.begin(step, judging ? alive : std::span<const WorkerId>());
  for (size_t i = 0; i < kCandidates && judging; ++i) {
    // A model with an output for each worker tolerates a share of unknown workers. Among the few
    // judged workers, that share may be exceeded.
    if (serves(i, alive) && serves(i, judged))
      forecast_by(i, step, judged, Judge::kSamples, judge_.forecast_of(i));
  }
}

void BayesForecaster::learn(const StepTimes& times) {
  judge_.score(times);
  const std::span<const PastTime> row = steps_.add(times);
  floor_.learn(times);
  for (const auto& model : models_) {
    if (model) model->learn(times.step, row);
  }
  ecdf_.learn(times);
  ewma_.learn(times);
  if (auto weights = fitting_.poll(times.step)) install(kModel, std::move(weights));
  fitting_.begin_if_due(times.step, steps_.count(), steps_.history(),
                        models_[kModel] ? &models_[kModel]->weights() : nullptr,
                        judge_.is_stale(kModel));
}

void BayesForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds)) return;
  ecdf_.learn_late(step, worker, seconds);
  ewma_.learn_late(step, worker, seconds);
  const auto log_time = static_cast<float>(std::log(seconds));
  steps_.correct(step, worker, log_time);
  for (const auto& model : models_) {
    if (model) model->correct(step, worker, log_time);
  }
}

std::string BayesForecaster::basis() const {
  std::string text;
  const uint32_t all = std::accumulate(rows_.begin(), rows_.end(), 0U);
  for (size_t i = 0; i < kCandidates; ++i) {
    if (rows_[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} %", kNames[i], (100 * rows_[i] + all / 2) / all);
    if (i == kModel) text += fmt::format(" (of {} steps)", models_[kModel]->weights().note.steps);
  }
  if (!model_trouble_.empty()) {
    text += "; " + model_trouble_;
  } else if (judge_.is_stale(kModel)) {
    text += "; model disabled (stale)";
  }
  return text + fitting_.remark(models_[kModel] != nullptr) + steps_.cut_short_text();
}

}  // namespace drover

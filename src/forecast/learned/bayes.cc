#include "forecast/learned/bayes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "forecast/learned/impute.h"
#include "forecast/learned/prior_model.h"
#include "forecast/sampling.h"
#include "forecast/sort_rows.h"
#include "forecast/told.h"

namespace drover {
namespace {

// How fast a forecaster's past is forgotten, and how much more the better one is believed: one with
// a CRPS 8 % above the best has 1/e of its weight.
constexpr double kScoreHalfLife = 6.0;  // steps
constexpr double kSharpness = 12.0;
constexpr double kLeastWeight = 0.1;
// A new model is taken for a little worse than the empirical forecaster until it has shown itself.
constexpr double kNewcomer = 1.02;
// Stale: this much worse than the empirical forecaster, after at least so many steps.
constexpr double kStale = 1.1;
constexpr size_t kStaleAfter = 12;
// Workers judged in a step, others in the next.
constexpr size_t kJudged = 32;
constexpr uint32_t kJudgingSamples = 64;
// A fit looks back on so many run-times at most, and a new model on so many steps.
constexpr size_t kFitCells = 400'000;
constexpr size_t kLookBack = 64;
constexpr uint64_t kStepsBetweenFits = 15;
// A worker's fastest run-time is forgotten by this factor a step.
constexpr float kForgetting = 1.002F;
constexpr uint64_t kImputing = 3;  // keys of draws, beside those of other forecasters
constexpr uint64_t kShifting = 4;

constexpr std::array<std::string_view, 4> kRivalNames = {"prior", "model", "ecdf", "ewma"};

}  // namespace

BayesForecaster::BayesForecaster(BayesSettings settings)
    : settings_(std::move(settings)),
      ecdf_({.seed = settings_.seed, .warmup = settings_.warmup}),
      ewma_({.seed = settings_.seed, .warmup = settings_.warmup}),
      rivals_(kRivals, kScoreHalfLife) {
  if (settings_.emission != Emission::kShared) {
    settings_.first_fit = std::max(settings_.first_fit, kFirstPublishedFit);
  }
  if (settings_.prior && !settings_.published) swap_in(kPrior, prior_model());
  if (settings_.model) swap_in(kModel, settings_.model);
}

void BayesForecaster::swap_in(Rival rival, std::shared_ptr<const ModelWeights> weights) {
  const uint32_t window = weights->shape.window;
  models_[rival] = std::make_unique<LearnedModel>(std::move(weights), settings_.seed);
  const size_t steps = history_.steps();
  for (size_t i = steps - std::min(steps, kLookBack + window); i < steps; ++i) {
    models_[rival]->learn(history_.step(i), history_.row(i));
  }
  stale_ = false;
  shifts_[rival].forget();
  if (rivals_.racing(kEcdf)) rivals_.enter(rival, kEcdf, kNewcomer);
}

bool BayesForecaster::serves(size_t rival, std::span<const WorkerId> alive) const {
  if (rival == kEcdf || rival == kEwma) return ecdf_.ready(alive);
  return models_[rival] != nullptr && seen_ > 0 && models_[rival]->trouble_with(alive).empty();
}

bool BayesForecaster::ready(std::span<const WorkerId> alive) const {
  return ecdf_.ready(alive) || serves(kModel, alive);
}

void BayesForecaster::forecast_by(size_t rival, Step step, std::span<const WorkerId> alive,
                                  uint32_t samples, Forecast& out) {
  if (rival == kPrior || rival == kModel) {
    models_[rival]->forecast(step, alive, samples, out);
    if (settings_.published) return;
    // Work has a least time it takes, which a smooth tail knows nothing of: a first arrival in next
    // to no time would make it pay to drop all others.
    floors_.clear();
    for (const WorkerId worker : alive) {
      const float own = worker < fastest_.size() ? fastest_[worker] : 0.0F;
      floors_.push_back(own > 0.0F ? own : fastest_of_all_);
    }
    for (uint32_t k = 0; k < out.samples; ++k) {
      float* const row = out.row(k).data();
      for (size_t i = 0; i < floors_.size(); ++i) row[i] = std::max(row[i], floors_[i]);
    }
  } else if (rival == kEcdf) {
    ecdf_.forecast(step, alive, samples, out);
  } else {
    ewma_.forecast(step, alive, samples, out);
  }
}

void BayesForecaster::choose_judged(Step step, std::span<const WorkerId> alive) {
  const size_t count = std::min(kJudged, alive.size());
  judged_.clear();
  for (size_t j = 0; j < count; ++j) {
    judged_.push_back(alive[judged_place(step, j, count, alive.size())]);
  }
}

void BayesForecaster::forecast(Step step, std::span<const WorkerId> alive, Forecast& out) {
  DROVER_CHECK(ready(alive));
  const uint32_t samples =
      settings_.samples > 0 ? settings_.samples : learned_samples(alive.size());
  const bool mixing = !settings_.published && ecdf_.ready(alive);
  std::array<double, kRivals> weights{};
  double sum = 0.0;
  if (mixing) {
    const std::span<const double> earned = rivals_.weights(kSharpness, kLeastWeight);
    for (size_t i = 0; i < kRivals; ++i) {
      if (serves(i, alive) && !(i == kModel && stale_)) weights[i] = earned[i];
      sum += weights[i];
    }
  }
  if (sum == 0.0) weights[serves(kModel, alive) ? kModel : kEcdf] = sum = 1.0;
  for (double& weight : weights) weight /= sum;
  // Rows in proportion; what rounding leaves goes to the first.
  out.resize(samples, static_cast<uint32_t>(alive.size()));
  double cumulated = 0.0;
  uint32_t row = 0;
  for (size_t i = 0; i < kRivals; ++i) {
    cumulated += weights[i];
    const auto end = std::min(samples, static_cast<uint32_t>(std::lround(cumulated * samples)));
    rows_[i] = end - row;
    if (rows_[i] == 0) continue;
    forecast_by(i, step, alive, rows_[i], part_);
    std::copy(part_.times.begin(), part_.times.end(), out.row(row).begin());
    if (mixing) {
      shifts_[i].apply(out, row, row + rows_[i],
                       forecast_draws(settings_.seed, step, static_cast<WorkerId>(i), kShifting));
    }
    row = end;
  }
  DROVER_CHECK(row == samples);
  model_trouble_ = models_[kModel] ? models_[kModel]->trouble_with(alive) : "";
  alive_.assign(alive.begin(), alive.end());
  expected_.resize(out.samples, out.workers);
  std::copy(out.times.begin(), out.times.end(), expected_.times.begin());
  judging_ = mixing;
  if (!judging_) return;
  choose_judged(step, alive);
  for (size_t i = 0; i < kRivals; ++i) {
    judged_samples_[i].resize(0, 0);
    // Among few, a stranger or two may be too many for a model that has an output for each worker.
    if (!serves(i, alive) || !serves(i, judged_)) continue;
    forecast_by(i, step, judged_, kJudgingSamples, judged_samples_[i]);
  }
}

void BayesForecaster::score(const StepTimes& times) {
  if (!judging_) return;
  judging_ = false;
  if (!arrivals_.read(times, judged_)) return;
  for (size_t i = 0; i < kRivals; ++i) {
    Forecast& foretold = judged_samples_[i];
    if (foretold.samples == 0) continue;
    sort_rows(foretold);
    // Judged as it was used: with the shift that was known then.
    const CommonShift before = shifts_[i];
    if (const size_t arrived = arrivals_.arrivals().size(); arrived > 0) {
      // An early one: what is slow for a reason of its own arrives later.
      const size_t rank = arrived / 4;
      shifts_[i].learn(arrivals_.foretold_at(foretold, rank), arrivals_.arrivals()[rank]);
    }
    before.apply(foretold, 0, foretold.samples,
                 forecast_draws(settings_.seed, times.step, static_cast<WorkerId>(i), kShifting));
    rivals_.add(i, arrivals_.mean_crps(foretold));
  }
  if (!rivals_.racing(kModel)) return;
  stale_ =
      rivals_.scored(kModel) >= kStaleAfter && rivals_.mean(kModel) > kStale * rivals_.mean(kEcdf);
}

void BayesForecaster::remember(const StepTimes& times) {
  row_.assign(std::max<size_t>(times.seconds.size(), history_.workers()), PastTime{});
  fastest_.resize(row_.size(), 0.0F);
  size_t place = 0;  // in alive_, which ascends
  // Sorted run-times are nobody's: whoever was cut short is one of those beyond the bound.
  const bool nameless = rows_[kModel] > 0 && models_[kModel] != nullptr &&
                        models_[kModel]->weights().shape.emission == Emission::kSorted;
  constexpr double kFading = 0.95;
  all_ *= kFading;
  cut_short_ *= kFading;
  for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
    if (!tells_something(times, worker)) continue;
    const auto log_time = static_cast<float>(std::log(times.seconds[worker]));
    all_ += 1.0;
    if (times.known[worker] == Known::kArrived) {
      row_[worker] = {log_time, log_time, Known::kArrived};
      const float time = to_run_time(times.seconds[worker]);
      fastest_of_all_ = fastest_of_all_ > 0.0F ? std::min(fastest_of_all_, time) : time;
      float& fastest = fastest_[worker];
      fastest = fastest > 0.0F ? std::min(kForgetting * fastest, time) : time;
      continue;
    }
    cut_short_ += 1.0;
    row_[worker] = {log_time, log_time, Known::kLonger};
    if (settings_.imputing == Imputing::kBound) continue;
    while (place < alive_.size() && alive_[place] < worker) ++place;
    DrawStream draws = forecast_draws(settings_.seed, times.step, worker, kImputing);
    column_.clear();
    if (nameless && !alive_.empty()) {
      const std::span<const float> row = expected_.row(draws.below(expected_.samples));
      column_.assign(row.begin(), row.end());
    } else if (place < alive_.size() && alive_[place] == worker) {
      for (uint32_t k = 0; k < expected_.samples; ++k) column_.push_back(expected_.row(k)[place]);
    }
    row_[worker].log_time = impute(column_, log_time, draws);
  }
  alive_.clear();
  history_.add(times.step, row_);
  for (const auto& model : models_) {
    if (model) model->learn(times.step, row_);
  }
}

void BayesForecaster::learn(const StepTimes& times) {
  score(times);
  remember(times);
  ecdf_.learn(times);
  ewma_.learn(times);
  ++seen_;
  mind_the_fit(times.step);
}

void BayesForecaster::learn_late(Step step, WorkerId worker, double seconds) {
  if (!is_run_time(seconds)) return;
  ecdf_.learn_late(step, worker, seconds);
  ewma_.learn_late(step, worker, seconds);
  const auto log_time = static_cast<float>(std::log(seconds));
  history_.correct(step, worker, log_time);
  for (const auto& model : models_) {
    if (model) model->correct(step, worker, log_time);
  }
}

void BayesForecaster::mind_the_fit(Step now) {
  if (!settings_.fitter) return;
  if (std::optional<Result<FitOutcome>> answer = settings_.fitter->poll(now)) {
    if (*answer) {
      fit_trouble_.clear();
      swap_in(kModel, std::make_shared<ModelWeights>(std::move(answer->value().weights)));
    } else {
      fit_trouble_ = answer->error().message;
    }
  }
  if (settings_.fitter->busy() || seen_ < settings_.first_fit) return;
  const bool first = models_[kModel] == nullptr && fitted_on_ == 0;
  const auto grown =
      static_cast<uint64_t>(settings_.refit_growth * static_cast<double>(fitted_on_));
  const bool due = seen_ >= std::max(grown, fitted_on_ + 2 * kStepsBetweenFits);
  if (first || due || (stale_ && seen_ >= fitted_on_ + kStepsBetweenFits)) begin_fit(now);
}

void BayesForecaster::begin_fit(Step now) {
  const size_t steps = history_.steps();
  const size_t most = std::max<size_t>(kLookBack, kFitCells / std::max(1U, history_.workers()));
  auto history = std::make_shared<History>(history_.part(steps - std::min(steps, most), steps));
  if (settings_.published) history->believe_all();
  FitRequest request;
  request.shape = default_shape(settings_.emission, history_.workers());
  request.history = std::move(history);
  request.settings.seed = settings_.seed;
  request.settings.iterations =
      models_[kModel] ? settings_.refit_iterations : settings_.first_iterations;
  if (settings_.published) request.settings.foresight = 0.0;
  if (models_[kModel] && models_[kModel]->weights().shape.emission == settings_.emission) {
    request.start = std::make_shared<ModelWeights>(models_[kModel]->weights());
  }
  fitted_on_ = seen_;
  settings_.fitter->begin(now, std::move(request));
}

std::string BayesForecaster::basis() const {
  std::string text;
  const uint32_t all = std::accumulate(rows_.begin(), rows_.end(), 0U);
  for (size_t i = 0; i < kRivals; ++i) {
    if (rows_[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {} %", kRivalNames[i], (100 * rows_[i] + all / 2) / all);
    if (i == kModel) text += fmt::format(" (of {} steps)", models_[kModel]->weights().note.steps);
  }
  if (!model_trouble_.empty()) {
    text += "; " + model_trouble_;
  } else if (stale_) {
    text += "; model disabled (stale)";
  } else if (models_[kModel] == nullptr && fit_trouble_.empty()) {
    text += "; no model yet";
  }
  if (!fit_trouble_.empty()) text += "; a fit has failed: " + fit_trouble_;
  return text + cut_short_share(cut_short_, all_);
}

}  // namespace drover

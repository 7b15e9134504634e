#include "forecast/learned/judge.h"

#include <algorithm>

#include "core/check.h"
#include "forecast/sampling.h"
#include "forecast/sort_rows.h"

namespace drover {
namespace {

// Decay of old scores, and how strongly weights depend on scores: a CRPS 8 % above the best gives
// 1/e of its weight.
constexpr double kScoreHalfLife = 6.0;  // steps
constexpr double kSharpness = 12.0;
constexpr double kLeastWeight = 0.1;
// The score of a new model, relative to the reference, until it has scores of its own.
constexpr double kNewModel = 1.02;
constexpr uint64_t kShifting = 4;  // use of draws, distinct from those of forecasters

}  // namespace

Judge::Judge(size_t candidates, size_t reference, uint64_t seed)
    : reference_(reference),
      seed_(seed),
      scores_(candidates, kScoreHalfLife),
      shifts_(candidates),
      forecasts_(candidates) {
  DROVER_CHECK(reference < candidates);
}

void Judge::restart(size_t candidate) {
  shifts_[candidate].forget();
  if (scores_.has_score(reference_)) scores_.enter(candidate, reference_, kNewModel);
}

std::span<const WorkerId> Judge::begin(Step step, std::span<const WorkerId> alive) {
  const size_t count = std::min(kWorkers, alive.size());
  judging_ = count > 0;
  judged_.clear();
  for (size_t j = 0; j < count; ++j)
    judged_.push_back(alive[judged_place(step, j, count, alive.size())]);
  for (Forecast& forecast : forecasts_) forecast.resize(0, 0);
  return judged_;
}

DrawStream Judge::shift_draws(size_t candidate, Step step) const {
  return forecast_draws(seed_, step, static_cast<WorkerId>(candidate), kShifting);
}

void Judge::score(const StepTimes& times) {
  if (!judging_) return;
  judging_ = false;
  if (!arrivals_.read(times, judged_)) return;
  for (size_t i = 0; i < forecasts_.size(); ++i) {
    Forecast& forecast = forecasts_[i];
    if (forecast.samples == 0) continue;
    sort_rows(forecast);
    // Scored as the forecast was used: with the shift known before this step.
    const CommonShift before = shifts_[i];
    if (const size_t arrived = arrivals_.arrivals().size(); arrived > 0) {
      // An early arrival, since workers that are slow for individual reasons arrive later.
      const size_t rank = arrived / 4;
      shifts_[i].learn(arrivals_.predicted_at(forecast, rank), arrivals_.arrivals()[rank]);
    }
    before.apply(forecast, 0, forecast.samples, shift_draws(i, times.step));
    scores_.add(i, arrivals_.mean_crps(forecast));
  }
}

std::span<const double> Judge::weights() { return scores_.weights(kSharpness, kLeastWeight); }

bool Judge::is_stale(size_t candidate) const {
  return scores_.has_score(candidate) && scores_.has_score(reference_) &&
         scores_.scored(candidate) >= kStaleAfter &&
         scores_.mean(candidate) > kStale * scores_.mean(reference_);
}

void Judge::adjust(size_t candidate, Step step, Forecast& forecast, uint32_t begin,
                   uint32_t end) const {
  shifts_[candidate].apply(forecast, begin, end, shift_draws(candidate, step));
}

}  // namespace drover

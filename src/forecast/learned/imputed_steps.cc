#include "forecast/learned/imputed_steps.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "forecast/learned/impute.h"
#include "forecast/run_time.h"
#include "forecast/sampling.h"

namespace drover {
namespace {

constexpr uint64_t kImputing = 3;  // keys of draws, beside those of other forecasters
constexpr double kFading = 0.95;   // a step, of the share that was cut short

}  // namespace

void ImputedSteps::expect(std::span<const WorkerId> alive, const Forecast& forecast,
                          bool by_worker) {
  DROVER_CHECK(forecast.workers == alive.size());
  alive_.assign(alive.begin(), alive.end());
  expected_.resize(forecast.samples, forecast.workers);
  std::copy(forecast.times.begin(), forecast.times.end(), expected_.times.begin());
  by_worker_ = by_worker;
}

std::span<const PastTime> ImputedSteps::add(const StepTimes& times) {
  row_.assign(std::max<size_t>(times.seconds.size(), history_.workers()), PastTime{});
  all_ *= kFading;
  cut_short_ *= kFading;
  for (WorkerId worker = 0; worker < times.seconds.size(); ++worker) {
    if (!has_run_time(times, worker)) continue;
    const auto log_time = static_cast<float>(std::log(times.seconds[worker]));
    row_[worker] = {log_time, log_time, times.known[worker]};
    all_ += 1.0;
    if (times.known[worker] == Known::kArrived) continue;
    cut_short_ += 1.0;
    if (imputing_ == Imputing::kTruncated) row_[worker].log_time = imputed(times, worker, log_time);
  }
  alive_.clear();
  history_.add(times.step, row_);
  ++count_;
  return row_;
}

float ImputedSteps::imputed(const StepTimes& times, WorkerId worker, float log_bound) {
  DrawStream draws = forecast_draws(seed_, times.step, worker, kImputing);
  column_.clear();
  if (!by_worker_ && !alive_.empty()) {
    const std::span<const float> row = expected_.row(draws.below(expected_.samples));
    column_.assign(row.begin(), row.end());
  } else if (const auto place = std::lower_bound(alive_.begin(), alive_.end(), worker);
             place != alive_.end() && *place == worker) {
    const auto column = static_cast<size_t>(place - alive_.begin());
    for (uint32_t k = 0; k < expected_.samples; ++k) column_.push_back(expected_.row(k)[column]);
  }
  return impute(column_, log_bound, draws);
}

std::string ImputedSteps::cut_short_text() const { return censored_share_text(cut_short_, all_); }

}  // namespace drover

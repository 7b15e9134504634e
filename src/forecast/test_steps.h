// Steps for tests: what a run observes of run-times that the test knows completely.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/forecaster.h"
#include "forecast/sort_rows.h"

namespace drover {

inline std::vector<WorkerId> first_workers(size_t count) {
  std::vector<WorkerId> workers(count);
  std::iota(workers.begin(), workers.end(), 0U);
  return workers;
}

// Run-times up to `cutoff` are observed; the others are censored at it.
inline StepTimes observed(Step step, std::span<const double> run_times, double cutoff = 1e300) {
  StepTimes times;
  times.step = step;
  for (const double x : run_times) {
    times.seconds.push_back(std::min(x, cutoff));
    times.known.push_back(x <= cutoff ? Known::kArrived : Known::kLonger);
  }
  return times;
}

// A forecast of these samples, each sorted.
inline Forecast sorted_forecast(const std::vector<std::vector<float>>& rows) {
  Forecast forecast;
  forecast.resize(static_cast<uint32_t>(rows.size()), static_cast<uint32_t>(rows.front().size()));
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    std::copy(rows[k].begin(), rows[k].end(), forecast.row(k).begin());
  }
  sort_rows(forecast);
  return forecast;
}

// All samples of one column, ascending.
inline std::vector<float> samples_of(const Forecast& forecast, size_t column) {
  std::vector<float> samples;
  for (uint32_t k = 0; k < forecast.samples; ++k) samples.push_back(forecast.row(k)[column]);
  std::sort(samples.begin(), samples.end());
  return samples;
}

inline double quantile_of(const std::vector<float>& sorted, double u) {
  const auto size = static_cast<double>(sorted.size());
  return double{sorted[std::min(sorted.size() - 1, static_cast<size_t>(u * size))]};
}

}  // namespace drover

// Measures the error of forecasts of a step, and the throughput that decisions by them lose, for
// bench/drift.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "drift_cluster.h"
#include "forecast/forecast.h"
#include "forecast/sort_rows.h"
#include "policy/objective.h"

namespace drover {

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
};
inline Moments moments(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / count)};
}

// The log times of one worker, ascending.
inline std::vector<double> log_times(const Forecast& forecast, WorkerId worker) {
  std::vector<double> logs;
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    logs.push_back(std::log(double{forecast.row(k)[worker]}));
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

inline double expected_throughput(const Forecast& sorted, uint32_t cutoff) {
  double sum = 0.0;
  for (uint32_t k = 0; k < sorted.samples; ++k) sum += cutoff / double{sorted.row(k)[cutoff - 1]};
  return sum / sorted.samples;
}

// Means over the judged steps, and, except for kLost, over the mostly censored workers.
enum Measure : size_t { kBias, kError, kSpreadRatio, kInside, kLost, kMeasures };
using Measures = std::array<double, kMeasures>;
inline constexpr std::array<std::string_view, kMeasures> kNames = {"bias", "error", "spread",
                                                                   "inside", "lost"};

class DriftJudge {
 public:
  void judge(const Recorded& step, const Forecast& forecast) {
    for (const WorkerId worker : step.mostly_cut) {
      const std::vector<double> predicted = log_times(forecast, worker);
      const std::vector<double> truth = log_times(step.truth, worker);
      const Moments ours = moments(predicted);
      const Moments real = moments(truth);
      const auto at = [&](double p) {
        return predicted[static_cast<size_t>(p * static_cast<double>(predicted.size() - 1) + 0.5)];
      };
      const auto inside = std::upper_bound(truth.begin(), truth.end(), at(0.95)) -
                          std::lower_bound(truth.begin(), truth.end(), at(0.05));
      sums_[kBias] += ours.mean - real.mean;
      sums_[kError] += std::abs(ours.mean - real.mean);
      sums_[kSpreadRatio] += ours.deviation / real.deviation;
      sums_[kInside] += static_cast<double>(inside) / kTruth;
      ++workers_;
    }
    Forecast sorted = forecast;
    sort_rows(sorted);
    const double best = search_.best(step.sorted, {}).value;
    sums_[kLost] += 1.0 - expected_throughput(step.sorted, search_.best(sorted, {}).cutoff) / best;
    ++steps_;
  }
  // NaN if no worker was mostly censored.
  Measures means() const {
    Measures means = sums_;
    for (size_t i = 0; i < kMeasures; ++i) means[i] /= i == kLost ? steps_ : workers_;
    return means;
  }

 private:
  Measures sums_{};
  double workers_ = 0.0;
  double steps_ = 0.0;
  CutoffSearch search_;
};

}  // namespace drover

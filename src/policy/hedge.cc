#include "policy/hedge.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "policy/policy.h"

namespace drover {
namespace {

// Candidate limits are taken at evenly spaced ranks of the samples, so that they are dense where
// run-times are dense; then again around the best one. Twice as many gain nothing in replays.
constexpr size_t kPooled = 2048;
constexpr size_t kTried = 64;
// The limit is at most this factor times the latest sample of the cutoff. Beyond it the forecast
// was wrong, and there is no reason to wait longer.
constexpr double kSurprise = 1.2;
// Share of the cutoff that a step needs even beyond the limit. If all workers are late, the limit
// alone would close the step with almost no gradients.
constexpr double kAtLeast = 0.2;

}  // namespace

void HedgeSearch::pool(const Forecast& forecast) {
  pooled_.clear();
  const size_t stride = std::max<size_t>(1, forecast.times.size() / kPooled);
  for (size_t i = stride / 2; i < forecast.times.size(); i += stride) {
    pooled_.push_back(forecast.times[i]);
  }
  std::sort(pooled_.begin(), pooled_.end());
}

void HedgeSearch::try_limits(const Forecast& forecast, size_t begin, size_t end) {
  const size_t count = std::min(kTried, end - begin);
  ranks_.resize(count);
  candidates_.resize(count);
  for (size_t j = 0; j < count; ++j) {
    ranks_[j] = begin + (j + 1) * (end - begin) / count - 1;  // includes end - 1
    candidates_[j] = static_cast<double>(pooled_[ranks_[j]]);
  }
  in_time_.resize(forecast.samples * count);
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    const std::span<const float> row = forecast.row(k);
    auto from = row.begin();
    for (size_t j = 0; j < count; ++j) {
      from = std::upper_bound(from, row.end(), candidates_[j],
                              [](double t, float x) { return t < static_cast<double>(x); });
      in_time_[k * count + j] = static_cast<uint32_t>(from - row.begin());
    }
  }
}

double HedgeSearch::closed_at(const Forecast& forecast, const Terms& terms, uint32_t k,
                              size_t j) const {
  const uint32_t in_time = in_time_[k * candidates_.size() + j];
  if (in_time > 0) return terms.value(in_time, candidates_[j]);
  return terms.value(1, static_cast<double>(forecast.row(k).front()));  // at least one gradient
}

void HedgeSearch::find_best_limit(const Forecast& forecast, const Terms& terms) {
  values_.assign(candidates_.size(), 0.0);
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    const auto enough = static_cast<double>(forecast.row(k)[cutoff_ - 1]);
    const double reached = terms.value(cutoff_, enough);
    for (size_t j = 0; j < candidates_.size(); ++j) {
      values_[j] += enough <= candidates_[j] ? reached : closed_at(forecast, terms, k, j);
    }
  }
  // Of two limits with the same value, the earlier is safer, since the forecast may be wrong.
  limit_ = static_cast<size_t>(std::max_element(values_.begin(), values_.end()) - values_.begin());
  value_ = values_[limit_] / forecast.samples;
}

void HedgeSearch::find_best_cutoff(const Forecast& forecast, const Terms& terms) {
  values_.assign(forecast.workers, 0.0);
  closed_.assign(forecast.workers + size_t{1}, 0.0);
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    const float* const row = forecast.row(k).data();
    const uint32_t in_time = in_time_[k * candidates_.size() + limit_];
    for (uint32_t i = 0; i < in_time; ++i) {
      values_[i] += terms.value(i + 1, static_cast<double>(row[i]));
    }
    closed_[in_time] += closed_at(forecast, terms, k, limit_);
  }
  double closed = 0.0;
  uint32_t best = 0;
  for (uint32_t i = 0; i < forecast.workers; ++i) {
    closed += closed_[i];
    values_[i] += closed;
    if (values_[i] >= values_[best]) best = i;
  }
  cutoff_ = best + 1;
  value_ = values_[best] / forecast.samples;
}

Hedged HedgeSearch::best(const Forecast& forecast, const Terms& terms) {
  Hedged best{search_.best(forecast, terms), kNoTimeLimit};
  pool(forecast);
  try_limits(forecast, 0, pooled_.size());
  cutoff_ = forecast.workers;
  find_best_limit(forecast, terms);
  find_best_cutoff(forecast, terms);
  find_best_limit(forecast, terms);
  // Refine between the neighbours of the best limit.
  const size_t begin = limit_ > 0 ? ranks_[limit_ - 1] : 0;
  const size_t end = limit_ + 1 < ranks_.size() ? ranks_[limit_ + 1] + 1 : pooled_.size();
  try_limits(forecast, begin, end);
  find_best_limit(forecast, terms);
  if (value_ >= best.expected.value) best = {{cutoff_, value_, 0.0}, candidates_[limit_]};
  double arrival = 0.0;
  double latest = 0.0;
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    const auto enough = static_cast<double>(forecast.row(k)[best.expected.cutoff - 1]);
    arrival += std::min(best.time_limit, enough);
    latest = std::max(latest, enough);
  }
  best.expected.arrival = arrival / forecast.samples;
  best.time_limit = std::min(best.time_limit, kSurprise * latest);
  best.at_least = static_cast<uint32_t>(std::ceil(kAtLeast * best.expected.cutoff));
  return best;
}

}  // namespace drover

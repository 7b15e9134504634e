#include "policy/hedge.h"

#include <algorithm>

#include "core/check.h"
#include "policy/policy.h"

namespace drover {
namespace {

// Ranks whose arrivals are tried as limits. With twice as many, replays gain nothing.
constexpr uint32_t kRanks = 20;

}  // namespace

void HedgeSearch::make_candidates(const Forecast& forecast) {
  candidates_.clear();
  column_.resize(forecast.samples);
  const uint32_t n = forecast.workers;
  const uint32_t ranks = std::min(n, kRanks);
  for (uint32_t j = 0; j < ranks; ++j) {
    // Evenly from the first quarter to the last arrival.
    const uint32_t rank =
        n - 1 - static_cast<uint32_t>(uint64_t{n} * 3 * j / (4 * uint64_t{ranks}));
    for (uint32_t k = 0; k < forecast.samples; ++k) column_[k] = forecast.row(k)[rank];
    for (const uint32_t percent : {15U, 40U, 65U, 90U, 97U}) {
      const auto place = column_.begin() + forecast.samples * percent / 100;
      std::nth_element(column_.begin(), place, column_.end());
      candidates_.push_back(static_cast<double>(*place));
    }
  }
  std::sort(candidates_.begin(), candidates_.end());
  in_time_.resize(forecast.samples * candidates_.size());
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    const std::span<const float> row = forecast.row(k);
    auto from = row.begin();
    for (size_t j = 0; j < candidates_.size(); ++j) {
      from = std::upper_bound(from, row.end(), candidates_[j],
                              [](double t, float x) { return t < static_cast<double>(x); });
      in_time_[k * candidates_.size() + j] = static_cast<uint32_t>(from - row.begin());
    }
  }
}

double HedgeSearch::closed_at(const Forecast& forecast, const Terms& terms, uint32_t k,
                              size_t j) const {
  const uint32_t in_time = in_time_[k * candidates_.size() + j];
  if (in_time > 0) return terms.value(in_time, candidates_[j]);
  return terms.value(1, static_cast<double>(forecast.row(k).front()));  // never nobody
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
  // Where two promise the same, the later is the gentler one.
  limit_ = 0;
  for (size_t j = 0; j < values_.size(); ++j) {
    if (values_[j] >= values_[limit_]) limit_ = j;
  }
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
  const Promise plain = search_.best(forecast, terms);
  Hedged best{plain, kNoTimeLimit};
  make_candidates(forecast);
  for (const uint32_t start : {plain.cutoff, forecast.workers, (forecast.workers * 3 + 3) / 4}) {
    cutoff_ = start;
    find_best_limit(forecast, terms);
    find_best_cutoff(forecast, terms);
    find_best_limit(forecast, terms);
    if (value_ > best.promise.value) best = {{cutoff_, value_, 0.0}, candidates_[limit_]};
  }
  double arrival = 0.0;
  for (uint32_t k = 0; k < forecast.samples; ++k) {
    arrival +=
        std::min(best.time_limit, static_cast<double>(forecast.row(k)[best.promise.cutoff - 1]));
  }
  best.promise.arrival = arrival / forecast.samples;
  return best;
}

}  // namespace drover

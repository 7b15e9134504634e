// Imputation: gives each censored run-time a value, drawn once from the worker's forecast beyond
// the bound. Models need a value for every run-time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/ecdf.h"
#include "forecast/learned/history.h"
#include "forecast/sampling.h"

namespace drover {

// The log of a random sample beyond the bound; without one, the bound plus an exponential draw with
// mean 0.1. The samples are run-times, not logs. ENSURES: at least log_bound.
float impute(std::span<const float> samples_of_worker, float log_bound, DrawStream& draws);

// Imputes a record step by step. A censored run-time is drawn from the empirical forecast of that
// worker before the step. Equal records and seeds give equal rows.
class Imputer {
 public:
  explicit Imputer(uint64_t seed) : seed_(seed), ecdf_({.seed = seed, .warmup = 1}) {}
  // The next step as a row for a history or a model, valid until the next call. Steps come in
  // order; the number of workers may only grow.
  std::span<const PastTime> impute_step(const StepTimes& times);
  // Reports the true run-time of a censored one, which came late.
  void correct(Step step, WorkerId worker, double seconds);

 private:
  const uint64_t seed_;
  EcdfForecaster ecdf_;
  std::vector<PastTime> row_;
  std::vector<WorkerId> cut_short_;
  Forecast expected_;
  std::vector<float> samples_;
};

// A whole record, imputed.
History history_of(std::span<const StepTimes> record, uint64_t seed);

}  // namespace drover

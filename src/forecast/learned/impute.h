// Imputing: a run-time that was cut short gets a value once, drawn from what is expected of its
// worker beyond the bound, since a model looks back on whole steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/ecdf.h"
#include "forecast/learned/history.h"
#include "forecast/sampling.h"

namespace drover {

// The log of one of the samples (run-times, not logs) beyond the bound, each as likely as the
// others; if none is, the bound plus an exponential draw of mean 0.1. Never less than the bound.
float impute(std::span<const float> samples_of_worker, float log_bound, DrawStream& draws);

// Imputes a record step by step: what was cut short is drawn from what the empirical forecaster
// expected of that worker before the step. Equal records and seeds give equal rows.
class Imputer {
 public:
  explicit Imputer(uint64_t seed) : seed_(seed), ecdf_({.seed = seed, .warmup = 1}) {}
  // The next step as a row for a history or a model; it stays until the next call. Steps come in
  // order; workers may only become more.
  std::span<const PastTime> impute_step(const StepTimes& times);
  // A run-time that was cut short is known after all.
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

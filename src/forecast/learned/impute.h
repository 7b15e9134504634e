// Imputing: a run-time that was cut short gets a value once, drawn from what is expected of its
// worker beyond the bound, since a model looks back on whole steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/step_times.h"
#include "forecast/learned/history.h"
#include "forecast/sampling.h"

namespace drover {

// The log of one of the samples (run-times, not logs) beyond the bound, each as likely as the
// others; if none is, the bound plus an exponential draw of mean 0.1. Never less than the bound.
float impute(std::span<const float> samples_of_worker, float log_bound, DrawStream& draws);

// The record of a run as a history: what was cut short is imputed from what the empirical
// forecaster expected of that worker before the step. Steps are in order; workers may only become
// more. Equal records and seeds give equal histories.
History history_of(std::span<const StepTimes> record, uint64_t seed);

}  // namespace drover

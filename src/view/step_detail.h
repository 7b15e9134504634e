// The details of a step: its arrivals, its decisions, and the forecast of it.
#pragma once

#include <optional>
#include <vector>

#include "store/run_reader.h"
#include "view/step_facts.h"

namespace drover {

// The forecast of a step's order statistics, made before it: for the r-th arrival the mean, and the
// 80 % interval (10 % to 90 %).
struct OrderForecast {
  std::vector<uint32_t> rank;
  std::vector<double> mean_s, low_s, high_s;
};

struct StepDetail {
  StepRecord record;
  StepFacts facts;
  std::vector<DecisionRecord> decisions;  // in chronological order; the last one took effect
  std::vector<RecordedArrival> arrivals;  // those in time first; each group by run-time
  std::optional<OrderForecast> forecast;
};

// Absent if the run has no such step (yet). Very many arrivals are sampled.
Result<std::optional<StepDetail>> read_step(const RunReader& reader, Step step);

}  // namespace drover

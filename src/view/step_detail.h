// One step close up: its arrivals, its decisions, and what was predicted of it.
#pragma once

#include <optional>
#include <vector>

#include "store/run_reader.h"
#include "view/step_facts.h"

namespace drover {

// A forecast of a step's order statistics, made before it: of the r-th arrival, the mean and where
// it lies with 80 % (from 10 % to 90 %).
struct OrderForecast {
  std::vector<uint32_t> rank;
  std::vector<double> mean_s, low_s, high_s;
};

struct StepDetail {
  StepRecord record;
  StepFacts facts;
  std::vector<DecisionRecord> decisions;  // in order; the last one counted
  std::vector<RecordedArrival> arrivals;  // ascending by run-time, first those in time
  std::optional<OrderForecast> forecast;
};

// Nothing: the run has no such step (yet). Of very many arrivals some are left out.
Result<std::optional<StepDetail>> read_step(const RunReader& reader, Step step);

}  // namespace drover

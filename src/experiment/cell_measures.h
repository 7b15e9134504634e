// The measures of a cell, from its run file: time and steps to the target, gradients used, and the
// idle share of the workers' time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/target.h"
#include "store/run_reader.h"

namespace drover {

struct CellMeasures {
  bool failed = false;  // the run did not complete
  std::string reason;   // why
  bool reached = false;
  double seconds = 0.0;  // from the opening of step 0 to the evaluation that reached the target;
                         // if it was not reached: to the end of the last step
  // From the opening of step 0 to the close of the last step before the evaluated parameters.
  // Evaluating takes no time in a simulation; real evaluators run beside the training, with a lower
  // priority.
  double trained_seconds = 0.0;
  uint64_t steps = 0;          // up to the parameters that reached the target; else all
  std::optional<double> best;  // the best value of all evaluations; absent without any

  // In those steps:
  uint64_t gradients = 0;          // used gradients
  double contributors_mean = 0.0;  // per step
  // Share of the workers' time in which they waited. A worker that arrived is idle from the end of
  // its computation to the close of the step; one that was still computing is not idle. Absent if
  // computing times are unknown, and for asynchronous runs, in which workers do not wait for steps.
  std::optional<double> idle_share;
};

Result<CellMeasures> measure(const RunReader& reader, const Target& target);

}  // namespace drover

// What a cell of an experiment amounts to, from its run file: time and steps to the target, how
// many gradients, how much of the workers' time was idle.
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
  // The same up to the close of the last step behind those parameters. Evaluating takes no time in
  // a simulation; real evaluators run beside the training, with a lower priority.
  double trained_seconds = 0.0;
  uint64_t steps = 0;          // behind the parameters that reached it; or all
  std::optional<double> best;  // of the target's kind, of all evaluations; absent without any

  // Of those steps.
  uint64_t gradients = 0;          // used
  double contributors_mean = 0.0;  // a step
  // Share of the workers' time in which they waited: a worker that arrived is idle from when it has
  // computed to the close of the step; one that was still computing then is not idle at all. Absent
  // where that is not known: workers that run freely have no steps to wait for.
  std::optional<double> idle_share;
};

Result<CellMeasures> measure(const RunReader& reader, const Target& target);

}  // namespace drover

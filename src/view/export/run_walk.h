// Walks through a recorded run step by step, holding only a stretch of it in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "store/run_reader.h"

namespace drover {

struct WalkedStep {
  const StepRecord& step;
  std::span<const RecordedArrival> arrivals;  // in order of worker
  std::span<const DecisionRecord> decisions;  // in the order in which they were made
};

// Steps, half open.
struct StepSpan {
  Step from = 0;
  Step to = 0;
};

// What is recorded now. Of a run that goes on there will be more, so whoever passes over a run
// twice must be given the same span both times.
Result<StepSpan> recorded_steps(const RunReader& reader);

// How many steps are read at once where there are about so many workers.
Step stretch_for(uint32_t workers);

// Visits the recorded steps of the span in order, a stretch at a time. The first error of `visit`
// ends the walk and is returned.
Status walk_steps(const RunReader& reader, const StepSpan& span, uint32_t workers,
                  const std::function<Status(const WalkedStep&)>& visit);

}  // namespace drover

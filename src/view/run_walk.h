// Walks through a recorded run step by step, holding only a stretch of it in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "store/run_reader.h"

namespace drover {

struct WalkedStep {
  const StepRecord& step;
  std::span<const RecordedArrival> arrivals;  // in order of worker
  std::span<const DecisionRecord> decisions;  // in the order in which they were made
  // The run-time that the step's decision predicted for the last arrival; NaN: none, or not read.
  double last_predicted_s = std::numeric_limits<double>::quiet_NaN();
};

// Steps, half open.
struct StepInterval {
  Step from = 0;
  Step to = 0;
};

// Some steps in memory, with the rest of what is recorded of them.
struct RunStretch {
  StepInterval span;  // ends behind the last step that is recorded
  std::vector<StepRecord> steps;
  std::vector<RecordedArrival> arrivals;
  // By step, and of a step in the order in which they were made. If the stretch reaches to the end
  // of what is recorded, those of steps that are still open too.
  std::vector<DecisionRecord> decisions;
  std::vector<RunReader::ExpectedLast> expected;  // empty if they were not wanted
};
Result<RunStretch> read_stretch(const RunReader& reader, const StepInterval& span, bool expected);

// Visits its steps in order. The first error of `visit` ends the walk and is returned.
Status walk_stretch(const RunStretch& stretch,
                    const std::function<Status(const WalkedStep&)>& visit);

// The first step that is recorded: not 0 in the file of a run that was resumed. 0: none is.
Result<Step> first_step(const RunReader& reader);

// The steps that are recorded now. Of a run that goes on there will be more, so a program that
// passes over a run twice must use the same span both times.
Result<StepInterval> recorded_steps(const RunReader& reader);

// How many steps are read at once where there are about so many workers.
Step stretch_for(uint32_t workers);

// Visits the recorded steps of the span in order, a stretch at a time, without predictions. The
// first error of `visit` ends the walk and is returned.
Status walk_steps(const RunReader& reader, const StepInterval& span, uint32_t workers,
                  const std::function<Status(const WalkedStep&)>& visit);

}  // namespace drover

// Iterates over a recorded run step by step, with only a stretch of it in memory.
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
  std::span<const RecordedArrival> arrivals;  // by worker
  std::span<const DecisionRecord> decisions;  // in chronological order
  // The run-time that the step's decision predicted for the last arrival; NaN if there is none or
  // it was not read.
  double last_predicted_s = std::numeric_limits<double>::quiet_NaN();
};

// The half-open interval of steps [from, to).
struct StepInterval {
  Step from = 0;
  Step to = 0;
};

// Some steps in memory, with their arrivals, decisions and forecasts.
struct RunStretch {
  StepInterval span;  // ends after the last recorded step
  std::vector<StepRecord> steps;
  std::vector<RecordedArrival> arrivals;
  // By step, and within a step in chronological order. If the stretch reaches the end of the
  // record, decisions about open steps are included.
  std::vector<DecisionRecord> decisions;
  std::vector<RunReader::ExpectedLast> expected;  // empty if not requested
};
Result<RunStretch> read_stretch(const RunReader& reader, const StepInterval& span, bool expected);

// Visits the steps in order. The first error of `visit` ends the iteration and is returned.
Status walk_stretch(const RunStretch& stretch,
                    const std::function<Status(const WalkedStep&)>& visit);

// The first recorded step, which is not 0 in the file of a resumed run; 0 if none is recorded.
Result<Step> first_step(const RunReader& reader);

// The steps recorded so far. A running run adds more, so a program that iterates over a run twice
// must use the same interval both times.
Result<StepInterval> recorded_steps(const RunReader& reader);

// The number of steps to read at once for this number of workers.
Step stretch_for(uint32_t workers);

// Visits the recorded steps of the span in order, a stretch at a time, without predictions. The
// first error of `visit` ends the iteration and is returned.
Status walk_steps(const RunReader& reader, const StepInterval& span, uint32_t workers,
                  const std::function<Status(const WalkedStep&)>& visit);

}  // namespace drover

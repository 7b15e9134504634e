// StepFacts: what a step's record, its arrivals and its decision amount to, for people to look at.
//
// Numbers that are not known are NaN. Times are seconds.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/run_record.h"
#include "store/run_reader.h"

namespace drover {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Where a step's time went. None is below zero, and together they are the step's elapsed time. The
// first three are not known if no contributor told how long it computed.
struct StepSplit {
  double computing_s = kUnknown;  // the slowest contributor's own computing
  double moving_s = kUnknown;     // what of the last contributor's run-time was not computing
  double waiting_s = kUnknown;    // the rest
  double aggregating_s = 0.0;     // from the last arrival needed to new parameters, but for:
  double deciding_s = 0.0;        // what of that was waiting for a decision
};

struct StepFacts {
  StepRecord record;
  double at_s = 0.0;
  double elapsed_s = 0.0;
  double cutoff = kUnknown;
  double alive = 0.0;
  double oracle = kUnknown;
  StepSplit split;
  // Against waiting for all: how much later the last of all arrived than the last that was used.
  // At least that, if somebody is censored.
  double saved_s = 0.0;
  uint64_t censored = 0;
  // About how much it was, if somebody is censored and a forecast is known: with the foretold mean
  // of the last arrival as the time of the last of all, or saved_s if that is more. Elsewhere
  // saved_s.
  double saved_about_s = 0.0;
  bool saved_foretold = false;  // a forecast is in it
};

inline bool in_time(const RecordedArrival& arrival) {
  return !arrival.arrival.censored && !arrival.late;
}

// `arrivals` are those of the step; `decision` is the one that counted, or null; `last_foretold_s`
// is when the last of all was expected to arrive.
StepFacts facts_of(const StepRecord& record, std::span<const RecordedArrival> arrivals,
                   const DecisionRecord* decision, double last_foretold_s = kUnknown);

// What somebody who knew all run-times would have waited for: the c that maximises c / x_(c), where
// x_(c) is the c-th smallest run-time; the largest of equals. NaN where a run-time is only bounded.
double oracle_cutoff(std::span<const RecordedArrival> arrivals);

}  // namespace drover

// StepFacts: the quantities that follow from one step's record, its arrivals and its decision.
//
// Unknown numbers are NaN. Times are seconds.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "core/run_record.h"
#include "store/run_reader.h"

namespace drover {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Where a step's time went. No part is negative, and together they are the step's elapsed time. The
// first three are unknown if no contributor reported its computing time.
struct StepSplit {
  double computing_s = kUnknown;  // the slowest contributor's own computing
  double moving_s = kUnknown;     // the part of the last contributor's run-time beside computing
  double waiting_s = kUnknown;    // the rest
  double aggregating_s = 0.0;     // from the last arrival needed to new parameters, except:
  double deciding_s = 0.0;        // the part of that spent waiting for a decision
};

// Time saved vs. synchronous: how much longer the step would have taken if it had waited for all.
struct TimeSaved {
  // From the last arrival that was used to the last of all. A lower bound if an arrival is
  // censored. If no gradient was in time, the step waited until it closed.
  double at_least_s = 0.0;
  // The same with the predicted time of the last arrival, if one is censored and a prediction is
  // known. Never less than at_least_s.
  double about_s = 0.0;
  bool predicted = false;  // about_s contains a prediction
};

// What workers spent on a step's gradients.
struct StepComputing {
  Duration used{};                     // on gradients that were in time
  Duration wasted{};                   // on others
  std::optional<Duration> overhead{};  // of the step beyond the slowest contributor's computing
  // Idle time of workers, of so much in all. A worker that arrived is idle from when it has
  // computed until the step closes; the others are not idle. A worker that arrived and did not
  // report its computing time is in neither.
  double idle_s = 0.0;
  double all_s = 0.0;
};

struct StepFacts {
  double at_s = 0.0;
  double elapsed_s = 0.0;
  double cutoff = kUnknown;
  double alive = 0.0;
  double oracle = kUnknown;
  StepSplit split;
  TimeSaved saved;
  StepComputing computing;
  uint64_t censored = 0;  // arrivals of which only a lower bound is known
  // The worker that the step waited for: the last that was in time. None if no worker was in time;
  // the record then names worker 0.
  std::optional<WorkerId> last_worker{};
};

// Whether the gradient arrived before its step closed.
inline bool in_time(const RecordedArrival& arrival) {
  return !arrival.arrival.censored && !arrival.late;
}

// `arrivals` are those of the step. `decision` is the one in force, or null. `last_predicted_s` is
// the predicted run-time of the last of all.
StepFacts facts_of(const StepRecord& record, std::span<const RecordedArrival> arrivals,
                   const DecisionRecord* decision, double last_predicted_s = kUnknown);

// The best cutoff in hindsight: the c that maximises c / x_(c), where x_(c) is the c-th smallest
// run-time; the largest of equals. NaN where a run-time is only bounded.
double oracle_cutoff(std::span<const RecordedArrival> arrivals);

}  // namespace drover

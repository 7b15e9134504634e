// StepFacts: the quantities derived from a step's record, its arrivals and its decision.
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

// The parts of a step's elapsed time. No part is negative, and they add up to the elapsed time. The
// first three are unknown if no contributor reported its computing time.
struct StepSplit {
  double computing_s = kUnknown;  // the slowest contributor's computing time
  double moving_s = kUnknown;     // the last contributor's run-time minus its computing time
  double waiting_s = kUnknown;    // the rest
  double aggregating_s = 0.0;     // from the last needed arrival to new parameters, less deciding
  double deciding_s = 0.0;        // waiting for a decision, when the step could have closed
};

// Time saved vs. synchronous: how much longer the step would have taken if it had waited for all.
struct TimeSaved {
  // From the last used arrival to the last of all arrivals. A lower bound if an arrival is
  // censored. If no gradient was in time, from the close of the step.
  double at_least_s = 0.0;
  // The same with the predicted time of the last arrival, if an arrival is censored and there is a
  // prediction. Never less than at_least_s.
  double about_s = 0.0;
  bool predicted = false;  // about_s contains a prediction
};

// The workers' computing and idle time in a step.
struct StepComputing {
  Duration used{};                     // on gradients in time
  Duration wasted{};                   // on others
  std::optional<Duration> overhead{};  // the step's time minus the slowest contributor's computing
  // Idle time of workers, and their total time. A worker that arrived is idle from the end of its
  // computing until the step closes; other workers are not idle. A worker that arrived without
  // reporting its computing time counts for neither.
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
  // The last worker in time. Absent if no worker was in time; the record then has worker 0.
  std::optional<WorkerId> last_worker{};
};

// Whether the gradient arrived before its step closed.
inline bool in_time(const RecordedArrival& arrival) {
  return !arrival.arrival.censored && !arrival.late;
}

// `arrivals` are those of the step. `decision` is the one in force, or null. `last_predicted_s` is
// the predicted run-time of the last arrival.
StepFacts facts_of(const StepRecord& record, std::span<const RecordedArrival> arrivals,
                   const DecisionRecord* decision, double last_predicted_s = kUnknown);

// The oracle's cutoff: the c that maximizes c / x_(c), where x_(c) is the c-th smallest run-time;
// the largest of equals. NaN if a run-time is censored.
double oracle_cutoff(std::span<const RecordedArrival> arrivals);

}  // namespace drover

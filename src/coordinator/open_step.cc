#include "coordinator/open_step.h"

#include <algorithm>
#include <limits>

namespace drover {
namespace {

// The worker's run-time on this shard, or its lower bound if the run-time is unknown.
Duration waited(const StepClosed& closed, WorkerId worker) {
  if (const StepClosed::Arrival* arrival = find_arrival(closed, worker)) return arrival->run_time;
  const auto late =
      std::find_if(closed.late.begin(), closed.late.end(), [&](const StepClosed::Arrival& each) {
        return each.worker == worker && each.step == closed.step;
      });
  return late != closed.late.end() ? late->run_time : closed.elapsed;
}

WorkerOutcome outcome_of(StepMode mode, const OpenStep& step, WorkerId worker) {
  WorkerOutcome outcome{.arrived = mode == StepMode::kSynchronous};
  for (const auto& [shard, closed] : step.closed) {
    const StepClosed::Arrival* arrival = find_arrival(closed, worker);
    if (mode == StepMode::kAsynchronous) {
      // A gradient may be in one round on this shard and in the next round on another shard.
      outcome.arrived = outcome.arrived || arrival != nullptr;
      if (arrival != nullptr) outcome.run_time = std::max(outcome.run_time, arrival->run_time);
      continue;
    }
    outcome.arrived = outcome.arrived && arrival != nullptr;
    outcome.run_time = std::max(outcome.run_time, waited(closed, worker));
  }
  return outcome;
}

bool is_refused(const OpenStep& step, WorkerId worker) {
  return step.refused.contains(worker) || step.outliers.contains(worker);
}

}  // namespace

const StepClosed::Arrival* find_arrival(const StepClosed& closed, WorkerId worker) {
  const auto found = std::lower_bound(
      closed.arrivals.begin(), closed.arrivals.end(), worker,
      [](const StepClosed::Arrival& arrival, WorkerId wanted) { return arrival.worker < wanted; });
  return found == closed.arrivals.end() || found->worker != worker ? nullptr : &*found;
}

void count_outcomes(StepMode mode, OpenStep& step) {
  uint32_t gradients = std::numeric_limits<uint32_t>::max();
  step.outcomes.clear();
  step.refused.clear();
  step.outliers.clear();
  step.noise = {};
  step.contributors = 0;
  step.reports_missing = 0;
  for (const auto& [shard, closed] : step.closed) {
    for (const StepClosed::Refused& refused : closed.refused) step.refused.insert(refused.worker);
    for (const StepClosed::Outlier& outlier : closed.outliers) {
      if (!outlier.used) step.outliers.insert(outlier.worker);
    }
    gradients = std::min(gradients, closed.gradients);
    step.noise += {.signal = closed.signal, .noise = closed.noise};
  }
  step.outcomes.reserve(step.alive.size());
  for (const WorkerId worker : step.alive) {
    step.outcomes.push_back(outcome_of(mode, step, worker));
    if (step.outcomes.back().arrived && !step.reports.contains(worker)) ++step.reports_missing;
    if (contributed(step, step.outcomes.size() - 1)) ++step.contributors;
  }
  if (mode == StepMode::kAsynchronous) step.reports_missing = step.contributors = gradients;
}

bool contributed(const OpenStep& step, size_t position) {
  return step.outcomes[position].arrived && !is_refused(step, step.alive[position]);
}

bool took_part(const OpenStep& step, size_t position, const StepReport& report) {
  const WorkerId worker = step.alive[position];
  if (contributed(step, position)) return true;
  return report.blocks > 0 && !is_refused(step, worker) &&
         std::any_of(step.closed.begin(), step.closed.end(), [&](const auto& entry) {
           return find_arrival(entry.second, worker) != nullptr;
         });
}

std::vector<WorkerId> stragglers_of(const OpenStep& step) {
  std::vector<WorkerId> late;
  for (size_t i = 0; i < step.alive.size(); ++i) {
    if (!step.outcomes[i].arrived) late.push_back(step.alive[i]);
  }
  return late;
}

StepTimes times_of(Step number, const OpenStep& step, uint32_t workers) {
  StepTimes times{.step = number,
                  .seconds = std::vector<double>(workers, 0.0),
                  .known = std::vector<Known>(workers, Known::kNothing),
                  .elapsed = 0.0,
                  .contributors = step.contributors};
  // Measured by the shards' clocks, like the run-times.
  for (const auto& [shard, closed] : step.closed)
    times.elapsed = std::max(times.elapsed, seconds(closed.elapsed));
  for (size_t i = 0; i < step.alive.size(); ++i) {
    const WorkerId worker = step.alive[i];
    const WorkerOutcome& outcome = step.outcomes[i];
    if (!outcome.arrived && (step.lost.contains(worker) || step.busy.contains(worker))) continue;
    times.seconds[worker] = seconds(outcome.run_time);
    times.known[worker] = outcome.arrived ? Known::kArrived : Known::kLonger;
  }
  return times;
}

}  // namespace drover

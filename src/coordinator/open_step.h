// OpenStep: everything the shards and workers have reported of one step so far, and what follows
// from it once the shards have closed the step.
//
// Shards report who arrived when; workers report loss, samples and computing time. A step that runs
// asynchronously is a round: a worker may be in it several times or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/gradient_noise.h"
#include "core/ids.h"
#include "core/step_times.h"
#include "core/time.h"
#include "wire/control.h"

namespace drover {

enum class StepMode : uint8_t { kSynchronous, kAsynchronous };

// The outcome for one worker over all shards.
struct WorkerOutcome {
  Duration run_time{};   // if some shard closed without it, a lower bound
  bool arrived = false;  // on every shard that has closed; asynchronous: on any
};

struct OpenStep {
  Duration at{};
  Duration closed_at{};
  double learning_rate = 0.0;
  std::vector<WorkerId> alive;        // when the step opened, ascending
  std::set<WorkerId> lost;            // of those, since
  std::set<WorkerId> busy;            // of those, with an earlier gradient that the server wants
  double noise_scale_at_open = 0.0;   // 0: unknown
  std::map<ShardId, Duration> leads;  // how much earlier than the last shard each opened the step
  std::map<ShardId, StepClosed> closed;
  std::map<WorkerId, StepReport> reports;  // the last of each
  std::vector<StepReport> round;           // asynchronous: all reports of this round

  // Set by count_outcomes():
  std::vector<WorkerOutcome> outcomes;  // in the order of `alive`
  std::set<WorkerId> refused;           // for NaN or infinity
  std::set<WorkerId> outliers;          // whose gradient was dropped because its norm was too large
  NoiseEstimate noise;
  uint32_t contributors = 0;
  size_t reports_missing = 0;  // of workers that arrived, or of gradients of the round

  double noise_scale = 0.0;      // after this step
  bool advanced = false;         // counts as closed although some shards have not closed it
  std::set<WorkerId> straggled;  // then: had not arrived on the shards that had closed
};

// The arrival of `worker` in `closed`; null if it did not arrive there.
// REQUIRES: closed.arrivals ascend by worker.
const StepClosed::Arrival* find_arrival(const StepClosed& closed, WorkerId worker);

// Computes outcomes, refusals, noise and counts from the closings that are there. Idempotent.
void count_outcomes(StepMode mode, OpenStep& step);

// Whether the gradient of the worker at this position of `alive` is in the update as a whole.
// REQUIRES (here and below): count_outcomes() was called.
bool contributed(const OpenStep& step, size_t position);

// The same, or, with partial pulls, whether all its blocks of some shard are in the update.
bool took_part(const OpenStep& step, size_t position, const StepReport& report);

// Workers that were alive when the step opened and have not arrived on all shards, ascending.
std::vector<WorkerId> stragglers_of(const OpenStep& step);

// What the step shows of the run-times of workers 0, 1, ..., `workers` - 1. A worker that was lost
// or busy before it arrived shows nothing.
StepTimes times_of(Step number, const OpenStep& step, uint32_t workers);

}  // namespace drover

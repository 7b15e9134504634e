// OpenStep: everything that shards and workers have reported about one step so far, and the
// outcomes derived from it once the shards have closed the step.
//
// Shards report when each worker arrived; workers report loss, samples and computing time. A step
// of an asynchronous run is a round: a worker may be in it several times or not at all.
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
  Duration run_time{};   // a lower bound if some shard closed without the worker
  bool arrived = false;  // on all shards that have closed; asynchronous: on any
};

struct OpenStep {
  Duration at{};
  Duration closed_at{};
  double learning_rate = 0.0;
  std::vector<WorkerId> alive;        // when the step opened, ascending
  std::set<WorkerId> lost;            // of `alive`, lost since then
  std::set<WorkerId> busy;            // of `alive`, finishing an earlier gradient as a probe
  double noise_scale_at_open = 0.0;   // 0: unknown
  std::map<ShardId, Duration> leads;  // how much earlier than the last shard each opened the step
  std::map<ShardId, StepClosed> closed;
  std::map<WorkerId, StepReport> reports;  // the last report of each worker
  std::vector<StepReport> round;           // asynchronous: all reports of this round

  // Set by count_outcomes():
  std::vector<WorkerOutcome> outcomes;  // in the order of `alive`
  std::set<WorkerId> refused;           // their gradients had NaN or infinity
  std::set<WorkerId> outliers;          // their gradients were dropped: the norm was too large
  NoiseEstimate noise;
  uint32_t contributors = 0;
  size_t reports_missing = 0;  // of workers that arrived, or of gradients of the round

  double noise_scale = 0.0;      // after this step
  bool advanced = false;         // counts as closed although some shards have not closed it
  std::set<WorkerId> straggled;  // if advanced: had not arrived on the shards that had closed
};

// The arrival of `worker` in `closed`; null if it did not arrive there.
// REQUIRES: closed.arrivals ascend by worker.
const StepClosed::Arrival* find_arrival(const StepClosed& closed, WorkerId worker);

// Computes outcomes, refusals, noise and counts from the closings received so far. Idempotent.
void count_outcomes(StepMode mode, OpenStep& step);

// Whether all blocks of the gradient of the worker at this position of `alive` are in the update.
// REQUIRES (here and below): count_outcomes() was called.
bool contributed(const OpenStep& step, size_t position);

// Whether contributed(), or, with partial pulls, all its blocks of at least one shard are in the
// update.
bool took_part(const OpenStep& step, size_t position, const StepReport& report);

// Workers that were alive when the step opened and have not arrived on all shards, ascending.
std::vector<WorkerId> stragglers_of(const OpenStep& step);

// The run-times of workers 0, 1, ..., `workers` - 1 in the step, as policies learn them. Nothing is
// known of a worker that was lost or busy before it arrived.
StepTimes times_of(Step number, const OpenStep& step, uint32_t workers);

}  // namespace drover

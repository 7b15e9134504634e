// Statistics of a whole run, computed in SQL from an open run file. Views of a run use
// view/run_aggregate.h.
//
// An Error has only the reason, as in store/database.h; RunReader adds the file.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "store/database.h"

namespace drover {

struct RunTotals {
  uint64_t steps = 0;
  uint64_t samples = 0;         // samples of all updates
  uint64_t gradients_used = 0;  // sum of contributors
  uint64_t gradients_late = 0;
  uint64_t gradients_refused = 0;
  uint32_t workers = 0;  // workers that joined; for a file without peers, those with arrivals
  uint32_t shards = 0;
  Duration last_step_end{};  // since the start of the run
  Duration first_step_start{};
};

// One worker over the whole run.
struct WorkerStatistics {
  WorkerId worker = 0;
  uint64_t steps = 0;     // steps with a row for this worker
  uint64_t last = 0;      // steps in which it was the last contributor to arrive
  uint64_t late = 0;      // gradients that arrived after the step had closed
  uint64_t censored = 0;  // steps with only a lower bound of its run-time
  // Share of its steps in which its gradient arrived in time.
  double inclusion() const {
    return 1.0 - static_cast<double>(late + censored) / static_cast<double>(steps);
  }
  Duration median_run_time{};
  // False: some run-times up to the median are lower bounds, so the true median is at least this.
  bool median_exact = true;
};

// Partial pulls: the parameters that gradients were computed on, and the numbers of gradients that
// blocks received.
struct PartialPullStatistics {
  std::optional<double> fresh_mean;  // share of fresh blocks, over all steps; absent: not reported
  double fresh_min = 1.0;            // least share of fresh blocks of a used gradient
  uint64_t stale_steps = 0;          // steps with a gradient on a block that was not fresh
  uint64_t staleness_max = 0;        // largest number of steps that a block was behind
  uint64_t uneven_steps = 0;       // steps in which blocks received different numbers of gradients
  double contributors_mean = 0.0;  // gradients of a block in a step
  uint32_t contributors_min = 0;
  uint32_t contributors_max = 0;
};

// A worker whose gradients had too large norms (--guard).
struct OutlierStatistics {
  WorkerId worker = 0;
  uint64_t steps = 0;      // steps with such a gradient
  double ratio_max = 0.0;  // largest norm as a multiple of the typical norm
};

Result<RunTotals> totals_of(const Database& database);
Result<std::vector<WorkerStatistics>> workers_of(const Database& database);  // in order of worker
// REQUIRES: a file of format 3 or later.
Result<PartialPullStatistics> partial_pulls_of(const Database& database);
// By number of steps, descending. Empty for files of older formats.
Result<std::vector<OutlierStatistics>> outliers_of(const Database& database);

}  // namespace drover

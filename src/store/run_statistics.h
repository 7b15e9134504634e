// Sums over a run that its file answers directly; computed in SQL from an open run file. Views of a
// run use view/run_aggregate.h.
//
// An Error gives only the reason, as in store/database.h; RunReader puts the file around it.
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
  uint64_t samples = 0;         // behind all updates
  uint64_t gradients_used = 0;  // sum of contributors
  uint64_t gradients_late = 0;
  uint64_t gradients_refused = 0;
  uint32_t workers = 0;  // that joined; of a file without peers, that appear in arrivals
  uint32_t shards = 0;
  Duration last_step_end{};  // since the start of the run
  Duration first_step_start{};
};

// One worker over the whole run.
struct WorkerStatistics {
  WorkerId worker = 0;
  uint64_t steps = 0;     // with a row for this worker
  uint64_t last = 0;      // steps for which it was the one waited for
  uint64_t late = 0;      // gradients that came after the step had closed
  uint64_t censored = 0;  // steps of which only a lower bound is known
  // Share of its steps in which its gradient came in time.
  double inclusion() const {
    return 1.0 - static_cast<double>(late + censored) / static_cast<double>(steps);
  }
  Duration median_run_time{};
  // False: among the run-times at or below the median are lower bounds, so the true median is this
  // or more.
  bool median_exact = true;
};

// Where workers need not wait for all blocks, what gradients were computed on; and whether blocks
// got different numbers of gradients.
struct PartialPullStatistics {
  std::optional<double> fresh_mean;  // share of blocks, over all steps; absent: nobody told
  double fresh_min = 1.0;            // of any gradient used
  uint64_t stale_steps = 0;          // with a gradient on a block that was not fresh
  uint64_t staleness_max = 0;        // steps that a block was behind
  uint64_t uneven_steps = 0;         // in which some blocks got fewer gradients than others
  double contributors_mean = 0.0;    // gradients of a block in a step
  uint32_t contributors_min = 0;
  uint32_t contributors_max = 0;
};

// A worker whose gradients were out of line (--guard).
struct OutlierStatistics {
  WorkerId worker = 0;
  uint64_t steps = 0;      // in which one was
  double ratio_max = 0.0;  // how many times as large as usual, at most
};

Result<RunTotals> totals_of(const Database& database);
Result<std::vector<WorkerStatistics>> workers_of(const Database& database);  // in order of worker
// Needs a file of format 3.
Result<PartialPullStatistics> partial_pulls_of(const Database& database);
// Who was most often comes first. Nothing, of a file from before there was a guard.
Result<std::vector<OutlierStatistics>> outliers_of(const Database& database);

}  // namespace drover

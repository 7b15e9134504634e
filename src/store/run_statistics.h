// What a run amounts to, in a few numbers; computed in SQL from an open run file.
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

struct StepStatistics {
  Duration median{};
  Duration p90{};
  // What a step took beyond its slowest contributor's own computing: transport, summing, updating,
  // waiting. Absent when no worker told its computing time.
  std::optional<Duration> overhead_median;
  std::optional<Duration> overhead_p90;
  // From the last arrival that was needed to the new parameters leaving.
  Duration closing_median{};
  // Of that, waiting for a decision: the longest, and in what share of the steps there was any.
  Duration undecided_max{};
  double undecided_share = 0.0;
};

// What was computed for nothing, because its step had closed.
struct WasteStatistics {
  uint64_t stopped = 0;                    // times that work was left off
  std::optional<Duration> restart_median;  // from the order to stop to hearing of the new start
  // Of all computing that is known of: what was left off, and gradients that came too late.
  // Absent when nobody told of any.
  std::optional<double> share;
};

// Where workers need not wait for all blocks, what gradients were computed on; and whether blocks
// got different numbers of gradients.
struct WeakStatistics {
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

// A part of the run: means over a stretch of steps. NaN where a step of the stretch was NaN, or
// where no loss of the stretch is known.
struct CurvePoint {
  Step first_step = 0;
  double loss = 0.0;
  Duration step_time{};
};

Result<RunTotals> totals_of(const Database& database);
Result<std::vector<WorkerStatistics>> workers_of(const Database& database);  // in order of worker
// Percentiles are nearest-rank: times that really occurred. All zero without steps.
Result<StepStatistics> step_times_of(const Database& database);
Result<WasteStatistics> waste_of(const Database& database);
// Needs a file of format 3.
Result<WeakStatistics> weak_of(const Database& database);
// Who was most often comes first. Nothing, of a file from before there was a guard.
Result<std::vector<OutlierStatistics>> outliers_of(const Database& database);
// At most `points` stretches of equal length, in order; fewer if there are fewer steps.
Result<std::vector<CurvePoint>> curve_of(const Database& database, uint32_t points);
// Mean training loss of the last steps whose loss is known (a step that used nobody's whole
// gradient has none), weighted by samples; NaN without such steps or if one of them was NaN.
Result<double> recent_loss_of(const Database& database, uint64_t last_steps);

}  // namespace drover

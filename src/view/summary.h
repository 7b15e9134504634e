// RunSummary: the summary of a run that `drover train` prints at its end, and `drover runs FILE`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/run_record.h"
#include "store/run_reader.h"
#include "view/recorded_run.h"

namespace drover {

// Gradients that workers aborted because their step had closed.
struct StopTotals {
  uint64_t stopped = 0;                      // number of aborted gradients
  std::optional<Duration> restart_median{};  // from the order to stop to the start of the next one
  // Share of all known computing time that was wasted on aborted gradients and on gradients that
  // were not in time. Absent if no worker reported its computing time.
  std::optional<double> wasted_share{};
};

struct RunSummary {
  RunTables tables;
  RunAggregate sums;
  StopTotals stops;
  std::vector<OutlierStatistics> outliers;  // the worker with the most outliers first
  std::vector<EventRecord> lost;            // losses of workers and other processes

  // Duration of the training; up to the last recorded step if the run has not ended.
  double seconds() const { return drover::seconds(tables.end.elapsed); }
  // Number of workers that joined; in a file without peers, that took part in a step.
  uint32_t workers() const;
  // Number of gradients whose step closed without them, including late ones.
  uint64_t dropped() const;
  // Workers that could take part in a step, those most often last in time first, then the slowest.
  std::vector<WorkerId> waited_for() const;
};

Result<RunSummary> summarize(const RunReader& reader);

// Text for people: aligned, with units, at most 25 lines, each ending in '\n'. Unknown numbers are
// "-".
std::string to_text(const RunSummary& summary);

// One JSON object in one line, without '\n'. Unknown numbers are null. Keys are stable; later
// versions may add some.
std::string to_json_line(const RunSummary& summary);

}  // namespace drover

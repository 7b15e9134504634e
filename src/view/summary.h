// RunSummary: the end of `drover train`, and `drover runs FILE`.
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

// Work that was stopped because its step had closed.
struct StopTotals {
  uint64_t stopped = 0;                      // times
  std::optional<Duration> restart_median{};  // from the order to stop to hearing of the new start
  // Share of all known computing that was for nothing: stopped work, and gradients that were not in
  // time. Absent if no worker reported its computing time.
  std::optional<double> wasted_share{};
};

struct RunSummary {
  RunTables tables;
  RunAggregate sums;
  StopTotals stops;
  std::vector<OutlierStatistics> outliers;  // the worker with the most comes first
  std::vector<EventRecord> lost;            // workers and other processes that were lost

  // Of training; of a run that did not end, up to its last recorded step.
  double seconds() const { return drover::seconds(tables.end.elapsed); }
  // Workers that joined; of a file without peers, those that took part in a step.
  uint32_t workers() const;
  // Gradients that their steps did not wait for, late ones among them.
  uint64_t left_behind() const;
  // Workers that could take part in a step: the most waited for, then the slowest, come first.
  std::vector<WorkerId> waited_for() const;
};

Result<RunSummary> summarize(const RunReader& reader);

// For people: aligned, with units, 25 lines at most, each ending in '\n'. Unknown numbers are "-".
std::string to_text(const RunSummary& summary);

// For programs: one JSON object in one line, without '\n'. Unknown numbers are null. Keys stay; new
// ones may come.
std::string to_json_line(const RunSummary& summary);

}  // namespace drover

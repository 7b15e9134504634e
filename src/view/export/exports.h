// The formats of `drover export`: tables, matrices, a timeline, a trace.
//
// All exporters read the run a stretch at a time, so that a run of any length fits in memory. They
// write either complete files or none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "store/run_reader.h"
#include "view/run_walk.h"

namespace drover {

struct ExportPlan {
  std::string out;     // file to write; for CSV a folder
  StepInterval steps;  // not empty
  uint32_t workers = 0;
  bool force = false;  // replace existing files
  // Called for every step with the share of the work done, 0 to 1. An error ends the export.
  std::function<Status(double)> on_progress = [](double) { return done(); };
};

struct Exported {
  std::vector<std::string> files;
  std::vector<std::string> notes;  // remarks on the content, for the user
};

// A folder with a CSV file for each table of docs/run-file.md. Column names have units, times are
// in seconds. A blank means unknown.
Result<Exported> export_csv(const RunReader& reader, const ExportPlan& plan);

// `out`: run-times in seconds as float64, steps by workers; NaN means unknown. Another file,
// `<out>.bounds.npy`, has the lower bounds of censored run-times; NaN elsewhere.
Result<Exported> export_npy(const RunReader& reader, const ExportPlan& plan);

// Chrome's trace events as JSON, for ui.perfetto.dev: a track for each worker and shard.
Result<Exported> export_perfetto(const RunReader& reader, const ExportPlan& plan);

// A trace for `drover replay`: CSV, steps by workers; a blank means unknown. Steps and workers
// without a known run-time are omitted.
Result<Exported> export_trace(const RunReader& reader, const ExportPlan& plan);

// --- Shared by exporters

// The workers with arrivals in some steps, and how many of their run-times are known.
struct WorkerCoverage {
  uint32_t columns = 0;     // the highest worker id plus one
  std::vector<bool> known;  // by worker: whether a run-time of it is known
  uint64_t arrivals = 0;
  uint64_t censored = 0;
};
// `share`: the part of the export's work that this pass makes, for plan.on_progress.
Result<WorkerCoverage> worker_coverage(const RunReader& reader, const ExportPlan& plan,
                                       double share);

// 1234567890 ns -> "1.234567890"
std::string seconds_text(Duration duration);

}  // namespace drover

// What `drover export` makes of a run file: tables, matrices, a picture of time, a trace.
//
// All of them read the run a stretch at a time, so that a run of any length fits in memory, and
// leave either complete files or none.
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
  std::string out;     // a file; of CSV a folder
  StepInterval steps;  // not empty
  uint32_t workers = 0;
  bool force = false;  // replace files that are there
  // Called for every step that is passed over, with how far all is, 0 to 1. An error ends it.
  std::function<Status(double)> watch = [](double) { return done(); };
};

struct Exported {
  std::vector<std::string> files;
  std::vector<std::string> notes;  // what the user should know of what is in them
};

// A folder with a file for each table of docs/run-file.md, with a header line; units are in the
// names of columns, times in seconds. A blank means not known.
Result<Exported> export_csv(const RunReader& reader, const ExportPlan& plan);

// `out`: run-times in seconds as float64, steps by workers, NaN where not known. Beside it
// `<out>.bounds.npy`: lower bounds of those of whom nothing else is known, NaN elsewhere.
Result<Exported> export_npy(const RunReader& reader, const ExportPlan& plan);

// Chrome's trace events as JSON, for ui.perfetto.dev: a track for each worker and shard.
Result<Exported> export_perfetto(const RunReader& reader, const ExportPlan& plan);

// What `drover replay` reads: CSV, steps by workers, blank where not known. Steps and workers of
// which nothing is known are left out.
Result<Exported> export_trace(const RunReader& reader, const ExportPlan& plan);

// --- For several of them.

// Who appears in a span, and of whom how much is known.
struct Attendees {
  uint32_t columns = 0;     // the highest number and one
  std::vector<bool> known;  // by worker: some run-time of it is
  uint64_t arrivals = 0;
  uint64_t censored = 0;
};
// `from`, `share`: how much of the whole work it is, for plan.watch.
Result<Attendees> attendees_of(const RunReader& reader, const ExportPlan& plan, double share);

// 1234567890 ns -> "1.234567890"
std::string seconds_text(Duration duration);

}  // namespace drover

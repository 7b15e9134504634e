// A report: one or several runs in one file that needs nothing beside it, as a page or as Markdown.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "view/run_snapshot.h"
#include "view/step_detail.h"

namespace drover {

struct ReportedRun {
  RunSnapshot snapshot;
  std::map<Step, StepDetail> details;  // of some steps, evenly spread
};

struct ReportFacts {
  std::string made;     // ISO 8601, UTC
  std::string command;  // that made it
};

// Reads a run file to its end. `wall_clock` is nanoseconds since 1970.
Result<ReportedRun> read_for_report(const std::string& path, Duration wall_clock);

// The page with the data in it. Nothing in the data can break out of its place.
std::string report_html(const std::vector<ReportedRun>& runs, const ReportFacts& facts);

// A short version: a table of the runs, and how to repeat each.
std::string report_markdown(const std::vector<ReportedRun>& runs, const ReportFacts& facts);

// Writes beside the file and renames, so that there is a whole report or the earlier one. Refuses
// to take the place of a database: it may be a run.
Status write_report(const std::string& path, const std::string& text);

}  // namespace drover

// A report: one or several runs in one self-contained file, as HTML or Markdown.
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
  std::map<Step, StepDetail> details;  // of some steps, evenly spaced
};

struct ReportFacts {
  std::string made;     // creation time, ISO 8601, UTC
  std::string command;  // the command line that created it
};

// Reads a run file to its end. `wall_clock` is nanoseconds since 1970.
Result<ReportedRun> read_for_report(const std::string& path, Duration wall_clock);

// The dashboard's page with the data embedded. The data is escaped so that it cannot end its
// element.
std::string report_html(const std::vector<ReportedRun>& runs, const ReportFacts& facts);

// A short version: a table of the runs, and how to reproduce each.
std::string report_markdown(const std::vector<ReportedRun>& runs, const ReportFacts& facts);

// Replaces the file atomically. Refuses to replace a database, because it may be a run file.
Status write_report(const std::string& path, const std::string& text);

}  // namespace drover

// The results of an experiment as text, Markdown, CSV and JSON.
#pragma once

#include <string>
#include <vector>

#include "experiment/experiment_summary.h"

namespace drover {

// A table for each place, aligned, with what became of cells without a time below it.
std::string to_text(const ExperimentFile& file, const std::vector<PlaceSummary>& places);
std::string to_markdown(const ExperimentFile& file, const std::vector<PlaceSummary>& places);
// A row for each place and variant.
std::string summary_csv(const ExperimentFile& file, const std::vector<PlaceSummary>& places);
// A row for each cell.
std::string results_csv(const ExperimentFile& file, const std::vector<CellResult>& results);
// One line.
std::string to_json_line(const ExperimentFile& file, const std::vector<PlaceSummary>& places,
                         const std::string& folder);

}  // namespace drover

// The results of an experiment as text, Markdown, CSV and JSON.
#pragma once

#include <string>
#include <vector>

#include "experiment/experiment_summary.h"

namespace drover {

// An aligned table for each place, followed by notes on cells without a time.
std::string to_text(const ExperimentFile& file, const std::vector<PlaceSummary>& places);
std::string to_markdown(const ExperimentFile& file, const std::vector<PlaceSummary>& places);
// CSV with a row for each place and variant.
std::string summary_csv(const ExperimentFile& file, const std::vector<PlaceSummary>& places);
// CSV with a row for each cell.
std::string results_csv(const ExperimentFile& file, const std::vector<CellResult>& results);
// One JSON object in one line, without '\n'.
std::string to_json_line(const ExperimentFile& file, const std::vector<PlaceSummary>& places,
                         const std::string& folder);

}  // namespace drover
